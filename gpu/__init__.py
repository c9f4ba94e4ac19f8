"""The CUDA side: what devices there are (:mod:`graphdb.gpu.probe`) and, where CuPy is installed, the executor on them.

Importing this package imports neither CuPy nor the driver.
"""
