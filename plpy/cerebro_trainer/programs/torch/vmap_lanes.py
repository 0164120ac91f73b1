"""A step of training as PyTorch's operations on several states at once, made of its operations on
one.

Every tensor has one dimension more, the first, along which the states lie. What does the same to
each number, or to each part of memory, wherever that lies, is called once for all states; anything
else once for each, on what is the state's alone. So a state comes to the same bits in every lane,
beside whatever states.

Which operations those are is told here by name, for PyTorch tells it of none. It calculates most of
a tensor by vectors and what is left at its end by single numbers, and a logarithm is another then
in its last bit; matrices are multiplied in another way where memory begins elsewhere. How one is
called for all is left to `torch.vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from cerebro_trainer.programs.torch.graph import Tensors, aten, captured, changed, graph_of

Fused: TypeAlias = Callable[[Tensors, Tensors], Any]
"""Trains the states that lie in tensors on a batch of each; the losses before it."""

NUMBERWISE = {
    *(
        aten.abs,
        aten.add,
        aten.add_,
        aten.amax,
        aten.amin,
        aten.clamp,
        aten.clamp_min,
        aten.copy_,
        aten.div,
        aten.div_,
    ),
    *(
        aten.eq,
        aten.ge,
        aten.gt,
        aten.le,
        aten.leaky_relu,
        aten.leaky_relu_backward,
        aten.logical_and,
    ),
    *(
        aten.logical_and_,
        aten.logical_not,
        aten.logical_or,
        aten.lt,
        aten.masked_fill,
        aten.maximum,
        aten.minimum,
    ),
    *(
        aten.mul,
        aten.mul_,
        aten.ne,
        aten.neg,
        aten.neg_,
        aten.reciprocal,
        aten.reciprocal_,
        aten.relu,
        aten.relu_,
    ),
    *(
        aten.rsqrt,
        aten.rsqrt_,
        aten.rsub,
        aten.sgn,
        aten.sigmoid_backward,
        aten.sign,
        aten.sqrt,
        aten.sqrt_,
        aten.sub,
    ),
    *(aten.sub_, aten.threshold_backward, aten.where),
}
"""What is exact, so that it is the same however it is calculated."""
VECTORWISE = {
    *(
        aten.elu,
        aten.elu_backward,
        aten.erf,
        aten.exp,
        aten.expm1,
        aten.gelu,
        aten.gelu_backward,
        aten.hardsigmoid,
    ),
    *(
        aten.hardsigmoid_backward,
        aten.log,
        aten.log1p,
        aten.sigmoid,
        aten.silu,
        aten.silu_backward,
        aten.softplus,
    ),
    *(aten.softplus_backward, aten.tanh, aten.tanh_backward),
}
"""What is rounded otherwise by vectors than number by number."""
MOVING = {
    *(
        aten._to_copy,
        aten._unsafe_view,
        aten.cat,
        aten.clone,
        aten.expand,
        aten.full_like,
        aten.new_full,
    ),
    *(
        aten.new_zeros,
        aten.ones_like,
        aten.permute,
        aten.reshape,
        aten.select,
        aten.select_backward,
        aten.slice,
    ),
    *(
        aten.slice_backward,
        aten.split,
        aten.squeeze,
        aten.stack,
        aten.t,
        aten.transpose,
        aten.unbind,
        aten.unsqueeze,
    ),
    *(aten.view, aten.zeros_like),
}
"""What calculates nothing."""
ROWWISE = {
    aten._log_softmax,
    aten._log_softmax_backward_data,
    aten._softmax,
    aten._softmax_backward_data,
}
"""What takes numbers together that lie one behind another, where that is the dimension which they
name.
"""
PARTWISE = {aten.mean, aten.sum}
"""What takes any numbers of a state together."""
PRODUCTS = {aten.bmm, aten.mm}
"""The same of two matrices each, to which it matters how they and what they come to lie in memory.
"""
WHOLE_VECTORS = 64
"""So many numbers are calculated by vectors alone, on any processor."""
SHARED_OUT = 2048
"""So many numbers may be divided among threads, wherever that is."""
ALIGNED = 64
"""Bytes that what reads memory reads at once, at most."""


class Lanes:
    """A value of each state; those of one lie together."""

    def __init__(self, values: torch.Tensor) -> None:
        within = max(
            (
                step
                for size, step in zip(values.shape[1:], values.stride()[1:], strict=True)
                if size > 1
            ),
            default=0,
        )
        self.values = values.contiguous() if 0 < values.stride(0) < within else values

    @property
    def lie_alike(self) -> bool:
        """Whether memory begins for all of them where reading it does, or equally far from
        there.
        """
        return bool(self.values.stride(0) * self.values.itemsize % ALIGNED == 0)

    def apart(self) -> Sequence[torch.Tensor]:
        """The value of each, which does not show where it lay."""
        parts = self.values.unbind(0)
        return parts if self.lie_alike else [part.clone() for part in parts]


def fused(step: torch.fx.GraphModule, held: Tensors, columns: Tensors) -> Fused:
    """The operations of such a step for all states, where these are tensors that it may read and
    change, each as the ones to come will lie; they are changed. An error where that would be one
    state's doing."""
    written = changed(step)
    for node in step.graph.nodes:
        # What an operation on one state leaves in another order is in the usual one for several.
        if node.target is aten.view.default and node not in written:
            node.target = aten.reshape.default
    several: Fused = graph_of(_Several(step).run, held, columns).forward
    return several


def captured_lanes(step: Fused, held: Tensors, columns: Tensors) -> Fused:
    """Such a step as one graph of a GPU's kernels, for states that always lie in these tensors;
    they are left as they are. The step itself where it draws: then it is not the same each time.
    """
    saved = [each.clone() for each in held]
    try:
        once = captured(partial(step, held), columns)
    except NotImplementedError:
        return step
    finally:
        for each, values in zip(held, saved, strict=True):
            each.copy_(values)
    return lambda _, batch: once(batch)


class _Several(torch.fx.Interpreter):  # type: ignore[misc]
    """Does for several states what is recorded of one."""

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        return Lanes(super().placeholder(target, args, kwargs))

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        return [each.values for each in super().output(target, args, kwargs)]

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        leaves, shape = tree_flatten((args, kwargs))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Lanes)]
        lanes = [leaves[place] for place in places]
        if not lanes or not isinstance(target, torch._ops.OpOverload):
            return super().call_function(target, args, kwargs)

        def one(*values: torch.Tensor) -> Any:
            for place, value in zip(places, values, strict=True):
                leaves[place] = value
            args, kwargs = tree_unflatten(leaves, shape)
            return target(*args, **kwargs)

        if _serves_all(
            target,
            args,
            kwargs,
            [leaf for leaf in leaves if isinstance(leaf, (Lanes, torch.Tensor))],
        ):
            if target.overloadpacket in PRODUCTS:
                return _product(*lanes)
            return tree_map(Lanes, torch.vmap(one)(*(each.values for each in lanes)))
        if target._schema.is_mutable:
            raise NotImplementedError(f"{target} changes what several states have")
        return _stacked(
            [one(*values) for values in zip(*(each.apart() for each in lanes), strict=True)]
        )


def _serves_all(
    target: Any, args: Any, kwargs: Any, values: Sequence[Lanes | torch.Tensor]
) -> bool:
    """Whether one call for all comes to the bits of one for each."""
    kind = target.overloadpacket
    if (
        kwargs.get("alpha", 1) != 1
        or "rounding_mode" in kwargs
        or kwargs.get("memory_format") is torch.channels_last
    ):
        return False
    if target is aten.pow.Tensor_Scalar:
        return args[1] in (1, 2, 3)  # products
    if kind is aten.pow:
        # One number of each state: there are 4, 8, 16 or 32, of which all are calculated by
        # vectors, or none.
        return all(
            each.values.dim() == 1 if isinstance(each, Lanes) else each.dim() == 0
            for each in values
        )
    if kind in NUMBERWISE or kind in MOVING:
        return True
    if not all(isinstance(each, Lanes) for each in values):
        return False
    if kind in VECTORWISE:
        return _fill_vectors([each.values for each in values])
    if kind in PRODUCTS:
        return True
    # A GPU reads several numbers at once from where that may begin; a processor reads them from
    # anywhere.
    alike = all(each.lie_alike or not each.values.is_cuda for each in values)
    if kind in ROWWISE:
        last = values[0].values.dim() - 2
        return alike and next(each for each in args if isinstance(each, int)) in (-1, last)
    return alike and kind in PARTWISE


def _fill_vectors(values: Sequence[torch.Tensor]) -> bool:
    """Whether the numbers of each state are calculated as are those of the others; on a GPU all
    numbers are.
    """
    shape, together = (
        values[0].shape,
        torch.get_num_threads() == 1 or values[0].numel() < SHARED_OUT,
    )
    plain = all(each.is_contiguous() and each.shape == shape for each in values)
    return values[0].is_cuda or (plain and together and values[0][0].numel() % WHOLE_VECTORS == 0)


def _product(left: Lanes, right: Lanes) -> Lanes:
    """That of two matrices of each state, or of several; behind them there are zeros where all must
    lie alike.
    """
    first, second, whole = left.values, right.values, ALIGNED // left.values.itemsize
    rows, columns = first.shape[-2], second.shape[-1]
    if not right.lie_alike:
        second = aten.constant_pad_nd.default(second, [0, -columns % whole])
    if not left.lie_alike or first[0, ..., 0].numel() * second.shape[-1] % whole:
        first = aten.constant_pad_nd.default(first, [0, 0, 0, -rows % whole])
    found = (aten.bmm.default if first.dim() == 3 else torch.vmap(aten.bmm.default))(first, second)
    return Lanes(found if found.shape[-2:] == (rows, columns) else found[..., :rows, :columns])


def _stacked(found: Sequence[Any]) -> Any:
    """Of the same results of each state, those of all."""
    if isinstance(found[0], torch.Tensor):
        return Lanes(torch.stack(found))
    return None if found[0] is None else tuple(map(_stacked, zip(*found, strict=True)))
