"""What processors of any level have or lack one by one (VNNI, BF16, IFMA ...): dot products, counts, a prefetch.

``forms`` says how lines are read.
"""
TABLE = """
@ 2C VPDPBUSD; mul; feature=avx512_vnni
VPDPBUSD      | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 50 /r      | FV
VPDPBUSD      | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 50 /r      | FV
VPDPBUSD      | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 50 /r      | FV
@ 2C VPDPBUSD; mul; feature=avx_vnni
VPDPBUSD      | X:xmm1, xmm2, xmm3/m128                      | RVM  | VEX.128.66.0F38.W0 50 /r
VPDPBUSD      | X:ymm1, ymm2, ymm3/m256                      | RVM  | VEX.256.66.0F38.W0 50 /r
@ 2C VPDPBUSDS; mul; feature=avx512_vnni
VPDPBUSDS     | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 51 /r      | FV
VPDPBUSDS     | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 51 /r      | FV
VPDPBUSDS     | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 51 /r      | FV
@ 2C VPDPBUSDS; mul; feature=avx_vnni
VPDPBUSDS     | X:xmm1, xmm2, xmm3/m128                      | RVM  | VEX.128.66.0F38.W0 51 /r
VPDPBUSDS     | X:ymm1, ymm2, ymm3/m256                      | RVM  | VEX.256.66.0F38.W0 51 /r
@ 2C VPDPWSSD; mul; feature=avx512_vnni
VPDPWSSD      | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 52 /r      | FV
VPDPWSSD      | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 52 /r      | FV
VPDPWSSD      | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 52 /r      | FV
@ 2C VPDPWSSD; mul; feature=avx_vnni
VPDPWSSD      | X:xmm1, xmm2, xmm3/m128                      | RVM  | VEX.128.66.0F38.W0 52 /r
VPDPWSSD      | X:ymm1, ymm2, ymm3/m256                      | RVM  | VEX.256.66.0F38.W0 52 /r
@ 2C VPDPWSSDS; mul; feature=avx512_vnni
VPDPWSSDS     | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 53 /r      | FV
VPDPWSSDS     | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 53 /r      | FV
VPDPWSSDS     | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 53 /r      | FV
@ 2C VPDPWSSDS; mul; feature=avx_vnni
VPDPWSSDS     | X:xmm1, xmm2, xmm3/m128                      | RVM  | VEX.128.66.0F38.W0 53 /r
VPDPWSSDS     | X:ymm1, ymm2, ymm3/m256                      | RVM  | VEX.256.66.0F38.W0 53 /r
@ 2C VPMADD52LUQ; mul; feature=avx512ifma
VPMADD52LUQ   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 B4 /r      | FV
VPMADD52LUQ   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 B4 /r      | FV
VPMADD52LUQ   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 B4 /r      | FV
@ 2C VPMADD52HUQ; mul; feature=avx512ifma
VPMADD52HUQ   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 B5 /r      | FV
VPMADD52HUQ   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 B5 /r      | FV
VPMADD52HUQ   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 B5 /r      | FV
@ 2C VDPBF16PS; fma; feature=avx512_bf16
VDPBF16PS     | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.F3.0F38.W0 52 /r      | FV
VDPBF16PS     | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.F3.0F38.W0 52 /r      | FV
VDPBF16PS     | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.F3.0F38.W0 52 /r      | FV
@ 2C VCVTNEPS2BF16; cvt; feature=avx512_bf16
VCVTNEPS2BF16 | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.F3.0F38.W0 72 /r      | FV
VCVTNEPS2BF16 | W:xmm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.F3.0F38.W0 72 /r      | FV
VCVTNEPS2BF16 | W:ymm1{k1}{z}, zmm2/m512/m32bcst             | RM   | EVEX.512.F3.0F38.W0 72 /r      | FV
@ 2C VCVTNE2PS2BF16; cvt; feature=avx512_bf16
VCVTNE2PS2BF16 | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.F2.0F38.W0 72 /r     | FV
VCVTNE2PS2BF16 | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.F2.0F38.W0 72 /r     | FV
VCVTNE2PS2BF16 | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.F2.0F38.W0 72 /r     | FV
@ 2C VPOPCNTB/VPOPCNTW/VPOPCNTD/VPOPCNTQ; alu3; feature=avx512_bitalg
VPOPCNTB      | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F38.W0 54 /r      | FVM
VPOPCNTB      | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F38.W0 54 /r      | FVM
VPOPCNTB      | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F38.W0 54 /r      | FVM
VPOPCNTW      | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F38.W1 54 /r      | FVM
VPOPCNTW      | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F38.W1 54 /r      | FVM
VPOPCNTW      | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F38.W1 54 /r      | FVM
@ 2C VPOPCNTB/VPOPCNTW/VPOPCNTD/VPOPCNTQ; alu3; feature=avx512_vpopcntdq
VPOPCNTD      | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.66.0F38.W0 55 /r      | FV
VPOPCNTD      | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.66.0F38.W0 55 /r      | FV
VPOPCNTD      | W:zmm1{k1}{z}, zmm2/m512/m32bcst             | RM   | EVEX.512.66.0F38.W0 55 /r      | FV
VPOPCNTQ      | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F38.W1 55 /r      | FV
VPOPCNTQ      | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F38.W1 55 /r      | FV
VPOPCNTQ      | W:zmm1{k1}{z}, zmm2/m512/m64bcst             | RM   | EVEX.512.66.0F38.W1 55 /r      | FV
@ 2B PREFETCHW; load; feature=3dnowprefetch
PREFETCHW     | m8                                           | M    | 0F 0D /1
"""
