"""Products of two computed float32 matrices, 16 columns at a time."""

from runtime.kernels.batch_matmul_f32 import batch_matmul_kernel

batch_matmul_f32_6x16 = batch_matmul_kernel(6, 1)
