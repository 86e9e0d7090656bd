"""Bytes of tensors as they are allocated: whole storages, each once, whatever views share it."""

import torch


def storages(value):
    """{key: bytes} of the storages behind a tensor, a tensor subclass, a DTensor or any nest of them."""
    found = {}
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, set)):
        for each in value:
            found |= storages(each)
    elif hasattr(value, "to_local"):
        found |= storages(value.to_local())
    elif hasattr(value, "__tensor_flatten__") and type(value) is not torch.Tensor:
        names, _ = value.__tensor_flatten__()
        found |= storages([getattr(value, name) for name in names])
    elif isinstance(value, torch.Tensor):
        storage = value.untyped_storage()
        found[storage._cdata] = storage.nbytes()
    return found


def held(value):
    """Bytes of those storages."""
    return sum(storages(value).values())


def elements(value):
    """Bytes of the elements alone, without the padding of a storage; tensors of value must not share storages."""
    tensors = [each.to_local() if hasattr(each, "to_local") else each for each in value]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


class Saved:
    """What autograd keeps inside `with`: {key: (bytes, where)}, each storage once, those of excluded tensors not at all.

    where() is asked when a storage is first kept. Storages are held, so that none is counted under another's address.
    """

    def __init__(self, excluded, where=lambda: ""):
        self.excluded, self._held, self._where, self.kept = set(storages(excluded)), [excluded], where, {}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)

    def _pack(self, tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in self.excluded and storage._cdata not in self.kept:
            self.kept[storage._cdata] = storage.nbytes(), self._where()
            self._held.append(storage)
        return tensor

    def __enter__(self):
        self._hooks.__enter__()
        return self

    def __exit__(self, *error):
        self._hooks.__exit__(*error)


class Curve:
    """Every allocation and release of the CPU allocator inside `with`; kept() and peak() are bytes above its beginning."""

    def __init__(self):
        self._profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True)

    def __enter__(self):
        self._profile.__enter__()
        return self

    def __exit__(self, *error):
        self._profile.__exit__(*error)
        events = self._profile.profiler.kineto_results.events()
        self.steps = [n for *_, n in sorted((e.start_ns(), i, e.nbytes()) for i, e in enumerate(events) if e.name() == "[memory]")]

    def kept(self):
        return sum(self.steps)

    def peak(self):
        now = most = 0
        for n in self.steps:
            now += n
            most = max(most, now)
        return most
