"""Products of two computed float32 matrices, 32 columns at a time."""

from runtime.kernels.batch_matmul_f32 import batch_matmul_kernel

batch_matmul_f32_12x32 = batch_matmul_kernel(12, 2)
