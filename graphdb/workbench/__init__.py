"""The workbench: ``graphdb ui FILE``, one page on this machine to ask a database, see its answers, and load data.

The editor is CodeMirror (MIT, ``assets/codemirror/LICENSE``), the drawing that of :mod:`graphdb.pictures`.
"""
