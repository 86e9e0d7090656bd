"""CUDA's dispatch and autograd rules on a machine without CUDA: shapes only, and forward only.

A CPU build refuses fake CUDA tensors in autograd, because no device guard stands for CUDA. PyTorch puts its own no-op
guard where a CUDA guard is already registered; a dummy is registered for it to replace. This leans on a mangled symbol of
torch 2.13.0, so available() says whether it worked. Backward still asks for a device and fails.
"""

import contextlib
import ctypes
import os

import torch
import torch.nn.functional as F

_CUDA = 1  # c10::DeviceType::CUDA
_kept = []


def available():
    """Whether fake CUDA tensors work in autograd from now on; a real CUDA device makes them work by itself."""
    if torch.cuda.is_available():
        return True
    try:
        registry = (ctypes.c_void_p * 64).in_dll(
            ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so")), "_ZN3c104impl26device_guard_impl_registryE"
        )
    except (OSError, ValueError):
        return False
    if not registry[_CUDA]:
        zero = ctypes.CFUNCTYPE(ctypes.c_long)(lambda: 0)  # every virtual method gives 0: no device is there
        table = (ctypes.c_void_p * 64)(*[ctypes.cast(zero, ctypes.c_void_p).value] * 64)
        guard = (ctypes.c_void_p * 2)(ctypes.addressof(table), 0)
        _kept.extend([zero, table, guard])
        registry[_CUDA] = ctypes.addressof(guard)
        torch._C._ensureCUDADeviceGuardSet()
    return True


@contextlib.contextmanager
def autocast(dtype=torch.bfloat16):
    """torch.autocast("cuda") turns itself off without a GPU; its switches do not."""
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", dtype)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled("cuda", before[0])
        torch.set_autocast_dtype("cuda", before[1])


def _flash(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None:
        raise NotImplementedError("flash attention takes no mask")
    return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, False, scale=scale)[0]


@contextlib.contextmanager
def flash_attention():
    """SDPA by its flash kernel, which a CPU build would not choose."""
    before, F.scaled_dot_product_attention = F.scaled_dot_product_attention, _flash
    try:
        yield
    finally:
        F.scaled_dot_product_attention = before
