timeout 75 python -m pytest -q -p no:benchmark tests/gpu/test_executors.py tests/gpu/test_device.py -k "cuda and paged" -n 4 2>&1 | tail -15
