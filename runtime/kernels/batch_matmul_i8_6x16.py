"""Products of two computed int8 matrices, 16 columns at a time."""

from runtime.kernels.batch_matmul_i8 import batch_matmul_kernel

batch_matmul_i8_6x16 = batch_matmul_kernel(6, 1)
