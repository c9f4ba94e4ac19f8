# expected: rmat18 at 1/4 within 2 times; 4-clique and sums less affected (hubs come first); triangle by search worst
timeout 35 python -m tests.benchmarks.larger_than_device --graph rmat18 --tables 64 || true
timeout 60 python -m tests.benchmarks.larger_than_device --graph rmat20 --parts 1 4 16 --runs 2 || true
