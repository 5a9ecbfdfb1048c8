"""Operations that each target spells in its own way, as LLVM assembly.

Kernels call them as undefined functions; the compiler adds the definition for the target it compiles for, which LLVM
then inlines. So numba's output does not depend on the target, and a target's features are checked before an
instruction that it may lack is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from runtime.native.target import Target

PAUSE = "xnn_target_pause"
DOT_U8_S8 = "xnn_target_dot_u8_s8"
DOT_S16 = "xnn_target_dot_s16"
PACK_WORDS = "xnn_target_pack_words"
PACK_BYTES = "xnn_target_pack_bytes"
ROUND_TO_EVEN = "xnn_target_round_to_even"


def define_primitives(text: str, target: Target) -> str:
    """LLVM assembly `text` with definitions in place of the declarations of primitives."""
    for name, define in _DEFINITIONS.items():
        text, found = re.subn(rf"^declare [^\n]*@{name}\(.*$", "", text, flags=re.MULTILINE)
        if found:
            text += define(target)
    return text


def _pause(target: Target) -> str:
    """The hint that a thread spins."""
    architecture = target.triple.split("-")[0]
    if architecture in ("x86_64", "i686"):
        body, declaration = "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    elif architecture in ("aarch64", "arm64"):
        body, declaration = "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    else:
        body, declaration = "", ""
    return f"\n{declaration}\ndefine void @{PAUSE}() alwaysinline {{\n{body}\nret void\n}}\n"


def _dot_u8_s8(target: Target) -> str:
    """acc[i] + the sum over the 4 bytes of lane i of a (unsigned) * b (signed): 16 lanes, wrapping like int32."""
    head = f"define <16 x i32> @{DOT_U8_S8}(<16 x i32> %acc, <16 x i32> %a, <16 x i32> %b) alwaysinline {{"
    if target.has("avx512vnni"):
        return f"""
declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <16 x i32>, <16 x i32>)
{head}
%r = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %acc, <16 x i32> %a, <16 x i32> %b)
ret <16 x i32> %r
}}
"""
    if target.has("avxvnni"):
        return _dot_of_halves(head, "vpdpbusd")
    # Exact everywhere: bytes widened to 16 bits in pairs, whose sums of products LLVM knows to be one instruction on
    # x86 (pmaddwd). The 8-bit multiply of SSSE3 would saturate.
    return f"""
{head}
%a16 = bitcast <16 x i32> %a to <32 x i16>
%b16 = bitcast <16 x i32> %b to <32 x i16>
%a0 = and <32 x i16> %a16, {_constant(255)}
%a1 = lshr <32 x i16> %a16, {_constant(8)}
%b0s = shl <32 x i16> %b16, {_constant(8)}
%b0 = ashr <32 x i16> %b0s, {_constant(8)}
%b1 = ashr <32 x i16> %b16, {_constant(8)}
{_pair_sums(0)}
{_pair_sums(1)}
%s = add <16 x i32> %s0, %s1
%r = add <16 x i32> %s, %acc
ret <16 x i32> %r
}}
"""


def _dot_s16(target: Target) -> str:
    """acc[i] + the sum of the products of the two int16 of lane i of a and b: 16 lanes, wrapping like int32."""
    head = f"define <16 x i32> @{DOT_S16}(<16 x i32> %acc, <16 x i32> %a, <16 x i32> %b) alwaysinline {{"
    if target.has("avx512vnni"):
        return f"""
declare <16 x i32> @llvm.x86.avx512.vpdpwssd.512(<16 x i32>, <16 x i32>, <16 x i32>)
{head}
%r = call <16 x i32> @llvm.x86.avx512.vpdpwssd.512(<16 x i32> %acc, <16 x i32> %a, <16 x i32> %b)
ret <16 x i32> %r
}}
"""
    if target.has("avxvnni"):
        return _dot_of_halves(head, "vpdpwssd")
    return f"""
{head}
%a0 = bitcast <16 x i32> %a to <32 x i16>
%b0 = bitcast <16 x i32> %b to <32 x i16>
{_pair_sums(0)}
%r = add <16 x i32> %s0, %acc
ret <16 x i32> %r
}}
"""


def _dot_of_halves(head: str, instruction: str) -> str:
    """The function that begins with `head`, by an instruction for 8 lanes."""
    name = f"@llvm.x86.avx512.{instruction}.256"
    low, high = _lanes(range(8)), _lanes(range(8, 16))
    halves = "\n".join(
        f"%{operand}{half} = shufflevector <16 x i32> %{operand}, <16 x i32> poison, <8 x i32> {lanes}"
        for operand in ("acc", "a", "b")
        for half, lanes in ((0, low), (1, high))
    )
    dots = "\n".join(
        f"%r{half} = call <8 x i32> {name}(<8 x i32> %acc{half}, <8 x i32> %a{half}, <8 x i32> %b{half})"
        for half in (0, 1)
    )
    return f"""
declare <8 x i32> {name}(<8 x i32>, <8 x i32>, <8 x i32>)
{head}
{halves}
{dots}
%r = shufflevector <8 x i32> %r0, <8 x i32> %r1, <16 x i32> {_lanes(range(16))}
ret <16 x i32> %r
}}
"""


def _round_to_even(target: Target) -> str:
    """16 float32 of less than 2**22 as int32, ties to the even integer."""
    head = f"define <16 x i32> @{ROUND_TO_EVEN}(<16 x float> %x) alwaysinline {{"
    if target.has("avx512f"):
        name = "@llvm.x86.avx512.mask.cvtps2dq.512"
        return f"""
declare <16 x i32> {name}(<16 x float>, <16 x i32>, i16, i32)
{head}
%r = call <16 x i32> {name}(<16 x float> %x, <16 x i32> zeroinitializer, i16 -1, i32 4)
ret <16 x i32> %r
}}
"""
    # 1.5 * 2**23 added to a smaller number: the sum's lowest bits are that number, rounded.
    magic, bits = "float 1.2582912e+07", f"i32 {0x4B400000}"
    return f"""
{head}
%sum = fadd <16 x float> %x, <{", ".join([magic] * 16)}>
%bits = bitcast <16 x float> %sum to <16 x i32>
%r = sub <16 x i32> %bits, <{", ".join([bits] * 16)}>
ret <16 x i32> %r
}}
"""


def _lanes(lanes: Iterable[int]) -> str:
    return f"<{', '.join(f'i32 {lane}' for lane in lanes)}>"


def _constant(value: int) -> str:
    return f"<{', '.join([f'i16 {value}'] * 32)}>"


def _pair_sums(i: int) -> str:
    even, odd = _lanes(range(0, 32, 2)), _lanes(range(1, 32, 2))
    return f"""%aw{i} = sext <32 x i16> %a{i} to <32 x i32>
%bw{i} = sext <32 x i16> %b{i} to <32 x i32>
%p{i} = mul nsw <32 x i32> %aw{i}, %bw{i}
%e{i} = shufflevector <32 x i32> %p{i}, <32 x i32> poison, <16 x i32> {even}
%o{i} = shufflevector <32 x i32> %p{i}, <32 x i32> poison, <16 x i32> {odd}
%s{i} = add <16 x i32> %e{i}, %o{i}"""


def _pack(name: str, wide: str, narrow: str, low: int, high: int, lanes: int, instruction: str, target: Target) -> str:
    """Saturating narrowing of a and b; each 128-bit lane of the result holds that lane of a, then that of b."""
    source, result = f"<{lanes} x {wide}>", f"<{2 * lanes} x {narrow}>"
    head = f"define {result} @{name}({source} %a, {source} %b) alwaysinline {{"
    if target.has("avx512bw"):
        return f"""
declare {result} @llvm.x86.avx512.{instruction}.512({source}, {source})
{head}
%r = call {result} @llvm.x86.avx512.{instruction}.512({source} %a, {source} %b)
ret {result} %r
}}
"""
    part = lanes // 4
    order = _lanes([x * lanes + lane * part + i for lane in range(4) for x in (0, 1) for i in range(part)])
    order_type = f"<{2 * lanes} x i32>"
    lowest, highest = (f"<{', '.join([f'{wide} {bound}'] * 2 * lanes)}>" for bound in (low, high))
    both = f"<{2 * lanes} x {wide}>"
    return f"""
{head}
%ab = shufflevector {source} %a, {source} %b, {order_type} {order}
%below = icmp slt {both} %ab, {lowest}
%raised = select <{2 * lanes} x i1> %below, {both} {lowest}, {both} %ab
%above = icmp sgt {both} %raised, {highest}
%clamped = select <{2 * lanes} x i1> %above, {both} {highest}, {both} %raised
%r = trunc {both} %clamped to {result}
ret {result} %r
}}
"""


def _pack_words(target: Target) -> str:
    return _pack(PACK_WORDS, "i32", "i16", -(2**15), 2**15 - 1, 16, "packssdw", target)


def _pack_bytes(target: Target) -> str:
    return _pack(PACK_BYTES, "i16", "i8", -128, 127, 32, "packsswb", target)


_DEFINITIONS: dict[str, Callable[[Target], str]] = {
    PAUSE: _pause,
    DOT_U8_S8: _dot_u8_s8,
    DOT_S16: _dot_s16,
    PACK_WORDS: _pack_words,
    PACK_BYTES: _pack_bytes,
    ROUND_TO_EVEN: _round_to_even,
}
