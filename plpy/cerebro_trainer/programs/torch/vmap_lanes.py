"""A training step of several states at once, made of PyTorch's operations on one state.

Every tensor has one more dimension, the first one, for the states. An operation is called once for
all states if it treats each number, or each part of memory, in the same way wherever it is. Any
other operation is called once per state, on the state's own memory. A state therefore gets the same
bits in every lane, whatever the other states are.

The operations are listed here by name, since PyTorch does not classify them. It computes most of a
tensor with vector instructions and the remainder with single numbers, and the last bit of a
logarithm depends on that. Matrices are multiplied in another way if their memory is aligned
differently. `torch.vmap` turns a call for one state into a call for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from cerebro_trainer.programs.torch.graph import (
    aten,
    capture_step,
    find_mutable_nodes,
    trace_graph,
)
from cerebro_trainer.programs.torch.tensors import Tensors

FusedStep: TypeAlias = Callable[[Tensors, Tensors], Any]
"""Trains the states in some tensors on one batch per state; returns the losses before it."""


def _find_operations(names: str) -> frozenset[Any]:
    return frozenset(getattr(aten, name) for name in names.split())


EXACT = _find_operations("""
    abs add add_ amax amin clamp clamp_min copy_ div div_ eq ge gt le leaky_relu
    leaky_relu_backward logical_and logical_and_ logical_not logical_or lt masked_fill maximum
    minimum mul mul_ ne neg neg_ reciprocal reciprocal_ relu relu_ rsqrt rsqrt_ rsub sgn
    sigmoid_backward sign sqrt sqrt_ sub sub_ threshold_backward where
""")
"""Operations on single numbers whose result does not depend on how they are computed."""
VECTOR_ROUNDED = _find_operations("""
    elu elu_backward erf exp expm1 gelu gelu_backward hardsigmoid hardsigmoid_backward log log1p
    sigmoid silu silu_backward softplus softplus_backward tanh tanh_backward
""")
"""Operations on single numbers that vector instructions round differently."""
MOVEMENTS = _find_operations("""
    _to_copy _unsafe_view cat clone expand full_like new_full new_zeros ones_like permute reshape
    select select_backward slice slice_backward split squeeze stack t transpose unbind unsqueeze
    view zeros_like
""")
"""Operations that compute nothing."""
ROW_REDUCTIONS = _find_operations("""
    _log_softmax _log_softmax_backward_data _softmax _softmax_backward_data
""")
"""Operations that combine adjacent numbers, if the last dimension is the one that they name."""
REDUCTIONS = _find_operations("mean sum")
"""Operations that combine any numbers of a state."""
PRODUCTS = _find_operations("bmm mm")
"""Products of two matrices; they depend on the memory layout of factors and result."""
VECTOR_NUMBERS = 64
"""A multiple of so many numbers is computed with vector instructions alone, on any processor."""
PARALLEL_NUMBERS = 2048
"""So many numbers may be divided among threads, at any position."""
ALIGNMENT = 64
"""Largest number of bytes that are read from memory at once."""


class LaneValues:
    """One value per state; the numbers of a state are together in memory."""

    def __init__(self, values: torch.Tensor) -> None:
        strides = [
            stride
            for size, stride in zip(values.shape[1:], values.stride()[1:], strict=True)
            if size > 1
        ]
        is_interleaved = 0 < values.stride(0) < max(strides, default=0)
        self.values = values.contiguous() if is_interleaved else values

    @property
    def are_aligned(self) -> bool:
        """True if the memory of all states has the same alignment."""
        return bool(self.values.stride(0) * self.values.itemsize % ALIGNMENT == 0)

    def split(self) -> Sequence[torch.Tensor]:
        """Return the value of each state, with an alignment that does not depend on its lane."""
        parts = self.values.unbind(0)
        return parts if self.are_aligned else [part.clone() for part in parts]


def fuse_step(step: torch.fx.GraphModule, tensors: Tensors, columns: Tensors) -> FusedStep:
    """Return the operations of a step for all states.

    Args:
        step: traced for one state.
        tensors: of all states, to be read and changed; they are changed by this call, too. Later
            ones must have the same memory layout.

    Raises:
        NotImplementedError: an operation would change all states for one of them.
    """
    mutable = find_mutable_nodes(step)
    for node in step.graph.nodes:
        # An operation on one state may permute its result, and not so for several states.
        if node.target is aten.view.default and node not in mutable:
            node.target = aten.reshape.default
    fused: FusedStep = trace_graph(_LaneInterpreter(step).run, tensors, columns).forward
    return fused


def capture_fused_step(step: FusedStep, tensors: Tensors, columns: Tensors) -> FusedStep:
    """Return a step as one CUDA graph, for states that are always in these tensors.

    The tensors keep their values. A step that draws random numbers is returned unchanged, because
    it differs each time.
    """
    original_values = [tensor.clone() for tensor in tensors]
    try:
        captured = capture_step(partial(step, tensors), columns)
    except NotImplementedError:
        return step
    finally:
        for tensor, values in zip(tensors, original_values, strict=True):
            tensor.copy_(values)
    return lambda _, batch: captured(batch)


class _LaneInterpreter(torch.fx.Interpreter):  # type: ignore[misc]
    """Runs the operations recorded for one state on several states."""

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        return LaneValues(super().placeholder(target, args, kwargs))

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        return [lanes.values for lanes in super().output(target, args, kwargs)]

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        positions = [n for n, leaf in enumerate(leaves) if isinstance(leaf, LaneValues)]
        lanes = [leaves[position] for position in positions]
        if not lanes or not isinstance(target, torch._ops.OpOverload):
            return super().call_function(target, args, kwargs)

        def call_for_state(*values: torch.Tensor) -> Any:
            for position, value in zip(positions, values, strict=True):
                leaves[position] = value
            args, kwargs = tree_unflatten(leaves, tree)
            return target(*args, **kwargs)

        operands = [leaf for leaf in leaves if isinstance(leaf, (LaneValues, torch.Tensor))]
        if _gives_same_bits(target, args, kwargs, operands):
            if target.overloadpacket in PRODUCTS:
                return _multiply(*lanes)
            call_for_all = torch.vmap(call_for_state)
            return tree_map(LaneValues, call_for_all(*(operand.values for operand in lanes)))
        if target._schema.is_mutable:
            raise NotImplementedError(f"{target} changes what several states have")
        states = zip(*(operand.split() for operand in lanes), strict=True)
        return _stack([call_for_state(*values) for values in states])


def _gives_same_bits(
    target: Any, args: Any, kwargs: Any, operands: Sequence[LaneValues | torch.Tensor]
) -> bool:
    """Return whether one call for all states has the bits of one call per state."""
    operation = target.overloadpacket
    if kwargs.get("alpha", 1) != 1 or "rounding_mode" in kwargs:
        return False
    if kwargs.get("memory_format") is torch.channels_last:
        return False
    if target is aten.pow.Tensor_Scalar:
        return args[1] in (1, 2, 3)  # products
    if operation is aten.pow:
        # One number per state: of 4, 8, 16 or 32 all are computed with vectors, or none.
        return all(map(_is_number, operands))
    if operation in EXACT or operation in MOVEMENTS:
        return True
    if not all(isinstance(operand, LaneValues) for operand in operands):
        return False
    if operation in VECTOR_ROUNDED:
        return _uses_equal_vectors([operand.values for operand in operands])
    if operation in PRODUCTS:
        return True
    # A GPU reads several numbers at once from aligned memory; a CPU reads them from anywhere.
    if not all(operand.are_aligned or not operand.values.is_cuda for operand in operands):
        return False
    if operation in ROW_REDUCTIONS:
        last_dimension = operands[0].values.dim() - 2
        dimension = next(argument for argument in args if isinstance(argument, int))
        return dimension in (-1, last_dimension)
    return operation in REDUCTIONS


def _is_number(operand: LaneValues | torch.Tensor) -> bool:
    if isinstance(operand, LaneValues):
        return bool(operand.values.dim() == 1)
    return bool(operand.dim() == 0)


def _uses_equal_vectors(values: Sequence[torch.Tensor]) -> bool:
    """Return whether vector instructions are used at the same positions of each state."""
    first = values[0]
    if first.is_cuda:
        return True  # there, all numbers are computed in the same way
    if torch.get_num_threads() > 1 and first.numel() >= PARALLEL_NUMBERS:
        return False
    if not all(value.is_contiguous() and value.shape == first.shape for value in values):
        return False
    return bool(first[0].numel() % VECTOR_NUMBERS == 0)


def _multiply(left: LaneValues, right: LaneValues) -> LaneValues:
    """Return the product of two matrices, or two stacks of them, of each state.

    Zeros are appended if that gives the memory of all states the same alignment.
    """
    first = left.values
    second = right.values
    alignment = ALIGNMENT // first.itemsize
    rows = first.shape[-2]
    columns = second.shape[-1]
    if not right.are_aligned:
        second = aten.constant_pad_nd.default(second, [0, -columns % alignment])
    if not left.are_aligned or first[0, ..., 0].numel() * second.shape[-1] % alignment:
        first = aten.constant_pad_nd.default(first, [0, 0, 0, -rows % alignment])
    multiply = aten.bmm.default if first.dim() == 3 else torch.vmap(aten.bmm.default)
    product = multiply(first, second)
    if product.shape[-2:] != (rows, columns):
        product = product[..., :rows, :columns]
    return LaneValues(product)


def _stack(results: Sequence[Any]) -> Any:
    """Return equally structured results of the states as those of all."""
    if isinstance(results[0], torch.Tensor):
        return LaneValues(torch.stack(results))
    if results[0] is None:
        return None
    return tuple(map(_stack, zip(*results, strict=True)))
