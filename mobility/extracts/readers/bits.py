"""64 bytes at once, as the bits of a word: what a processor's vector instructions make of a comparison.

Each function compiles to a few instructions of the present processor. Nothing here checks a bound.
"""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

WIDTH = 64  # bytes that one call reads; all must exist
_LANES = ir.VectorType(ir.IntType(8), WIDTH)
_ZERO = ir.Constant(ir.IntType(32), 0)

Word = Callable[..., Any]  # its own types count the context as an argument of the caller
Emitted = tuple[Any, Callable[..., Any]]


def _matches(_context: Any, data: Any, _at: Any, _byte: Any) -> Emitted:
    """Bit i is set where data[at + i] == byte."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = _load(context, builder, signature, arguments)
        one = builder.insert_element(ir.Constant(_LANES, ir.Undefined), arguments[2], _ZERO)
        order = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        wanted = builder.shuffle_vector(one, ir.Constant(_LANES, ir.Undefined), order)
        return builder.bitcast(builder.icmp_unsigned("==", lanes, wanted), ir.IntType(WIDTH))

    return types.uint64(data, types.intp, types.uint8), emit


def _unusual(_context: Any, data: Any, _at: Any) -> Emitted:
    """Bit i is set where data[at + i] is a control character or not ASCII: below 32 as a signed number."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = _load(context, builder, signature, arguments)
        bounds = ir.Constant(_LANES, [32] * WIDTH)
        return builder.bitcast(builder.icmp_signed("<", lanes, bounds), ir.IntType(WIDTH))

    return types.uint64(data, types.intp), emit


def _high_bits(_context: Any, data: Any, _at: Any) -> Emitted:
    """Bit i is set where data[at + i] >= 128."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = _load(context, builder, signature, arguments)
        zeros = ir.Constant(_LANES, [0] * WIDTH)
        return builder.bitcast(builder.icmp_signed("<", lanes, zeros), ir.IntType(WIDTH))

    return types.uint64(data, types.intp), emit


def _trailing_zeros(_context: Any, _word: Any) -> Emitted:
    """Place of the lowest bit that is set; of a word without any, anything."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), emit


def _ones(_context: Any, _word: Any) -> Emitted:
    """Count the bits that are set."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), emit


def _load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    place = builder.gep(array.data, [arguments[1]])
    return builder.load(builder.bitcast(place, _LANES.as_pointer()), align=1)


matches, unusual, high_bits, trailing_zeros, ones = (
    cast(Word, intrinsic(emitter)) for emitter in (_matches, _unusual, _high_bits, _trailing_zeros, _ones)
)
