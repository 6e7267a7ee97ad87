"""Vector instructions, part 7 (EVEX): shuffles, permutes, inserts and extracts (AVX-512, VBMI).

``forms`` says how lines are read.
"""
TABLE = """
@ 2B PSHUFB; shuf; feature=avx512bw
VPSHUFB       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.WIG 00 /r     | FVM
VPSHUFB       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.WIG 00 /r     | FVM
VPSHUFB       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.WIG 00 /r     | FVM
@ 2B PSHUFD; shuf; feature=avx512f
VPSHUFD       | W:xmm1{k1}{z}, xmm2/m128/m32bcst, imm8       | RMI  | EVEX.128.66.0F.W0 70 /r ib     | FV
VPSHUFD       | W:ymm1{k1}{z}, ymm2/m256/m32bcst, imm8       | RMI  | EVEX.256.66.0F.W0 70 /r ib     | FV
VPSHUFD       | W:zmm1{k1}{z}, zmm2/m512/m32bcst, imm8       | RMI  | EVEX.512.66.0F.W0 70 /r ib     | FV
@ 2B PSHUFHW; shuf; feature=avx512bw
VPSHUFHW      | W:xmm1{k1}{z}, xmm2/m128, imm8               | RMI  | EVEX.128.F3.0F.WIG 70 /r ib    | FVM
VPSHUFHW      | W:ymm1{k1}{z}, ymm2/m256, imm8               | RMI  | EVEX.256.F3.0F.WIG 70 /r ib    | FVM
VPSHUFHW      | W:zmm1{k1}{z}, zmm2/m512, imm8               | RMI  | EVEX.512.F3.0F.WIG 70 /r ib    | FVM
@ 2B PSHUFLW; shuf; feature=avx512bw
VPSHUFLW      | W:xmm1{k1}{z}, xmm2/m128, imm8               | RMI  | EVEX.128.F2.0F.WIG 70 /r ib    | FVM
VPSHUFLW      | W:ymm1{k1}{z}, ymm2/m256, imm8               | RMI  | EVEX.256.F2.0F.WIG 70 /r ib    | FVM
VPSHUFLW      | W:zmm1{k1}{z}, zmm2/m512, imm8               | RMI  | EVEX.512.F2.0F.WIG 70 /r ib    | FVM
@ 2B SHUFPS; shuf; feature=avx512f
VSHUFPS       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst, imm8 | RVMI | EVEX.128.0F.W0 C6 /r ib        | FV
VSHUFPS       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst, imm8 | RVMI | EVEX.256.0F.W0 C6 /r ib        | FV
VSHUFPS       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst, imm8 | RVMI | EVEX.512.0F.W0 C6 /r ib        | FV
@ 2B SHUFPD; shuf; feature=avx512f
VSHUFPD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst, imm8 | RVMI | EVEX.128.66.0F.W1 C6 /r ib     | FV
VSHUFPD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst, imm8 | RVMI | EVEX.256.66.0F.W1 C6 /r ib     | FV
VSHUFPD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst, imm8 | RVMI | EVEX.512.66.0F.W1 C6 /r ib     | FV
@ 2C UNPCKLPS; shuf; feature=avx512f
VUNPCKLPS     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 14 /r           | FV
VUNPCKLPS     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 14 /r           | FV
VUNPCKLPS     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.0F.W0 14 /r           | FV
@ 2C UNPCKHPS; shuf; feature=avx512f
VUNPCKHPS     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 15 /r           | FV
VUNPCKHPS     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 15 /r           | FV
VUNPCKHPS     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.0F.W0 15 /r           | FV
@ 2C UNPCKLPD; shuf; feature=avx512f
VUNPCKLPD     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 14 /r        | FV
VUNPCKLPD     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 14 /r        | FV
VUNPCKLPD     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 14 /r        | FV
@ 2C UNPCKHPD; shuf; feature=avx512f
VUNPCKHPD     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 15 /r        | FV
VUNPCKHPD     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 15 /r        | FV
VUNPCKHPD     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 15 /r        | FV
@ 2B PUNPCKLBW/PUNPCKLWD/PUNPCKLDQ/PUNPCKLQDQ; shuf; feature=avx512bw
VPUNPCKLBW    | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG 60 /r       | FVM
VPUNPCKLBW    | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG 60 /r       | FVM
VPUNPCKLBW    | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG 60 /r       | FVM
VPUNPCKLWD    | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG 61 /r       | FVM
VPUNPCKLWD    | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG 61 /r       | FVM
VPUNPCKLWD    | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG 61 /r       | FVM
@ 2B PUNPCKLBW/PUNPCKLWD/PUNPCKLDQ/PUNPCKLQDQ; shuf; feature=avx512f
VPUNPCKLDQ    | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F.W0 62 /r        | FV
VPUNPCKLDQ    | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F.W0 62 /r        | FV
VPUNPCKLDQ    | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F.W0 62 /r        | FV
VPUNPCKLQDQ   | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 6C /r        | FV
VPUNPCKLQDQ   | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 6C /r        | FV
VPUNPCKLQDQ   | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 6C /r        | FV
@ 2B PUNPCKHBW/PUNPCKHWD/PUNPCKHDQ/PUNPCKHQDQ; shuf; feature=avx512bw
VPUNPCKHBW    | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG 68 /r       | FVM
VPUNPCKHBW    | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG 68 /r       | FVM
VPUNPCKHBW    | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG 68 /r       | FVM
VPUNPCKHWD    | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG 69 /r       | FVM
VPUNPCKHWD    | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG 69 /r       | FVM
VPUNPCKHWD    | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG 69 /r       | FVM
@ 2B PUNPCKHBW/PUNPCKHWD/PUNPCKHDQ/PUNPCKHQDQ; shuf; feature=avx512f
VPUNPCKHDQ    | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F.W0 6A /r        | FV
VPUNPCKHDQ    | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F.W0 6A /r        | FV
VPUNPCKHDQ    | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F.W0 6A /r        | FV
VPUNPCKHQDQ   | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 6D /r        | FV
VPUNPCKHQDQ   | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 6D /r        | FV
VPUNPCKHQDQ   | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 6D /r        | FV
@ 2B PACKSSWB/PACKSSDW; shuf; feature=avx512bw
VPACKSSWB     | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG 63 /r       | FVM
VPACKSSWB     | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG 63 /r       | FVM
VPACKSSWB     | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG 63 /r       | FVM
VPACKSSDW     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F.W0 6B /r        | FV
VPACKSSDW     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F.W0 6B /r        | FV
VPACKSSDW     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F.W0 6B /r        | FV
@ 2B PACKUSDW; shuf; feature=avx512bw
VPACKUSDW     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 2B /r      | FV
VPACKUSDW     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 2B /r      | FV
VPACKUSDW     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 2B /r      | FV
@ 2B PACKUSWB; shuf; feature=avx512bw
VPACKUSWB     | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG 67 /r       | FVM
VPACKUSWB     | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG 67 /r       | FVM
VPACKUSWB     | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG 67 /r       | FVM
@ 2B PALIGNR; shuf; feature=avx512bw
VPALIGNR      | W:xmm1{k1}{z}, xmm2, xmm3/m128, imm8         | RVMI | EVEX.128.66.0F3A.WIG 0F /r ib  | FVM
VPALIGNR      | W:ymm1{k1}{z}, ymm2, ymm3/m256, imm8         | RVMI | EVEX.256.66.0F3A.WIG 0F /r ib  | FVM
VPALIGNR      | W:zmm1{k1}{z}, zmm2, zmm3/m512, imm8         | RVMI | EVEX.512.66.0F3A.WIG 0F /r ib  | FVM
@ 2C VALIGND/VALIGNQ; cross; feature=avx512f
VALIGND       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst, imm8 | RVMI | EVEX.128.66.0F3A.W0 03 /r ib   | FV
VALIGND       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst, imm8 | RVMI | EVEX.256.66.0F3A.W0 03 /r ib   | FV
VALIGND       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst, imm8 | RVMI | EVEX.512.66.0F3A.W0 03 /r ib   | FV
VALIGNQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst, imm8 | RVMI | EVEX.128.66.0F3A.W1 03 /r ib   | FV
VALIGNQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst, imm8 | RVMI | EVEX.256.66.0F3A.W1 03 /r ib   | FV
VALIGNQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst, imm8 | RVMI | EVEX.512.66.0F3A.W1 03 /r ib   | FV
@ 2C VPERMILPS; shuf; feature=avx512f
VPERMILPS     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 0C /r      | FV
VPERMILPS     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 0C /r      | FV
VPERMILPS     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 0C /r      | FV
VPERMILPS     | W:xmm1{k1}{z}, xmm2/m128/m32bcst, imm8       | RMI  | EVEX.128.66.0F3A.W0 04 /r ib   | FV
VPERMILPS     | W:ymm1{k1}{z}, ymm2/m256/m32bcst, imm8       | RMI  | EVEX.256.66.0F3A.W0 04 /r ib   | FV
VPERMILPS     | W:zmm1{k1}{z}, zmm2/m512/m32bcst, imm8       | RMI  | EVEX.512.66.0F3A.W0 04 /r ib   | FV
@ 2C VPERMILPD; shuf; feature=avx512f
VPERMILPD     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 0D /r      | FV
VPERMILPD     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 0D /r      | FV
VPERMILPD     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 0D /r      | FV
VPERMILPD     | W:xmm1{k1}{z}, xmm2/m128/m64bcst, imm8       | RMI  | EVEX.128.66.0F3A.W1 05 /r ib   | FV
VPERMILPD     | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | RMI  | EVEX.256.66.0F3A.W1 05 /r ib   | FV
VPERMILPD     | W:zmm1{k1}{z}, zmm2/m512/m64bcst, imm8       | RMI  | EVEX.512.66.0F3A.W1 05 /r ib   | FV
@ 2C VPERMD/VPERMW; cross; feature=avx512f
VPERMD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 36 /r      | FV
VPERMD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 36 /r      | FV
@ 2C VPERMD/VPERMW; cross; feature=avx512bw
VPERMW        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W1 8D /r      | FVM
VPERMW        | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W1 8D /r      | FVM
VPERMW        | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W1 8D /r      | FVM
@ 2C VPERMQ; cross; feature=avx512f
VPERMQ        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 36 /r      | FV
VPERMQ        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 36 /r      | FV
VPERMQ        | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | RMI  | EVEX.256.66.0F3A.W1 00 /r ib   | FV
VPERMQ        | W:zmm1{k1}{z}, zmm2/m512/m64bcst, imm8       | RMI  | EVEX.512.66.0F3A.W1 00 /r ib   | FV
@ 2C VPERMPS; cross; feature=avx512f
VPERMPS       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 16 /r      | FV
VPERMPS       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 16 /r      | FV
@ 2C VPERMPD; cross; feature=avx512f
VPERMPD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 16 /r      | FV
VPERMPD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 16 /r      | FV
VPERMPD       | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | RMI  | EVEX.256.66.0F3A.W1 01 /r ib   | FV
VPERMPD       | W:zmm1{k1}{z}, zmm2/m512/m64bcst, imm8       | RMI  | EVEX.512.66.0F3A.W1 01 /r ib   | FV
@ 2C VPERMI2W/VPERMI2D/VPERMI2Q/VPERMI2PS/VPERMI2PD; cross; feature=avx512bw
VPERMI2W      | X:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W1 75 /r      | FVM
VPERMI2W      | X:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W1 75 /r      | FVM
VPERMI2W      | X:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W1 75 /r      | FVM
@ 2C VPERMI2W/VPERMI2D/VPERMI2Q/VPERMI2PS/VPERMI2PD; cross; feature=avx512f
VPERMI2D      | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 76 /r      | FV
VPERMI2D      | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 76 /r      | FV
VPERMI2D      | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 76 /r      | FV
VPERMI2Q      | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 76 /r      | FV
VPERMI2Q      | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 76 /r      | FV
VPERMI2Q      | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 76 /r      | FV
VPERMI2PS     | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 77 /r      | FV
VPERMI2PS     | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 77 /r      | FV
VPERMI2PS     | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 77 /r      | FV
VPERMI2PD     | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 77 /r      | FV
VPERMI2PD     | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 77 /r      | FV
VPERMI2PD     | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 77 /r      | FV
@ 2C VPERMT2W/VPERMT2D/VPERMT2Q/VPERMT2PS/VPERMT2PD; cross; feature=avx512bw
VPERMT2W      | X:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W1 7D /r      | FVM
VPERMT2W      | X:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W1 7D /r      | FVM
VPERMT2W      | X:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W1 7D /r      | FVM
@ 2C VPERMT2W/VPERMT2D/VPERMT2Q/VPERMT2PS/VPERMT2PD; cross; feature=avx512f
VPERMT2D      | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 7E /r      | FV
VPERMT2D      | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 7E /r      | FV
VPERMT2D      | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 7E /r      | FV
VPERMT2Q      | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 7E /r      | FV
VPERMT2Q      | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 7E /r      | FV
VPERMT2Q      | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 7E /r      | FV
VPERMT2PS     | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 7F /r      | FV
VPERMT2PS     | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 7F /r      | FV
VPERMT2PS     | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 7F /r      | FV
VPERMT2PD     | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 7F /r      | FV
VPERMT2PD     | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 7F /r      | FV
VPERMT2PD     | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 7F /r      | FV
@ 2C VPERMB; cross; feature=avx512vbmi
VPERMB        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W0 8D /r      | FVM
VPERMB        | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W0 8D /r      | FVM
VPERMB        | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W0 8D /r      | FVM
@ 2C VPERMI2B; cross; feature=avx512vbmi
VPERMI2B      | X:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W0 75 /r      | FVM
VPERMI2B      | X:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W0 75 /r      | FVM
VPERMI2B      | X:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W0 75 /r      | FVM
@ 2C VPERMT2B; cross; feature=avx512vbmi
VPERMT2B      | X:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W0 7D /r      | FVM
VPERMT2B      | X:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W0 7D /r      | FVM
VPERMT2B      | X:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W0 7D /r      | FVM
@ 2C VSHUFF32x4/VSHUFF64x2/VSHUFI32x4/VSHUFI64x2; cross; feature=avx512f
VSHUFF32X4    | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst, imm8 | RVMI | EVEX.256.66.0F3A.W0 23 /r ib   | FV
VSHUFF32X4    | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst, imm8 | RVMI | EVEX.512.66.0F3A.W0 23 /r ib   | FV
VSHUFF64X2    | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst, imm8 | RVMI | EVEX.256.66.0F3A.W1 23 /r ib   | FV
VSHUFF64X2    | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst, imm8 | RVMI | EVEX.512.66.0F3A.W1 23 /r ib   | FV
VSHUFI32X4    | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst, imm8 | RVMI | EVEX.256.66.0F3A.W0 43 /r ib   | FV
VSHUFI32X4    | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst, imm8 | RVMI | EVEX.512.66.0F3A.W0 43 /r ib   | FV
VSHUFI64X2    | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst, imm8 | RVMI | EVEX.256.66.0F3A.W1 43 /r ib   | FV
VSHUFI64X2    | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst, imm8 | RVMI | EVEX.512.66.0F3A.W1 43 /r ib   | FV
@ 2C VEXTRACTF128/VEXTRACTF32x4/VEXTRACTF64x2/VEXTRACTF32x8/VEXTRACTF64x4; cross; feature=avx512f
VEXTRACTF32X4 | W:xmm1/m128{k1}{z}, ymm2, imm8               | MRI  | EVEX.256.66.0F3A.W0 19 /r ib   | T4
VEXTRACTF32X4 | W:xmm1/m128{k1}{z}, zmm2, imm8               | MRI  | EVEX.512.66.0F3A.W0 19 /r ib   | T4
@ 2C VEXTRACTF128/VEXTRACTF32x4/VEXTRACTF64x2/VEXTRACTF32x8/VEXTRACTF64x4; cross; feature=avx512dq
VEXTRACTF64X2 | W:xmm1/m128{k1}{z}, ymm2, imm8               | MRI  | EVEX.256.66.0F3A.W1 19 /r ib   | T2
VEXTRACTF64X2 | W:xmm1/m128{k1}{z}, zmm2, imm8               | MRI  | EVEX.512.66.0F3A.W1 19 /r ib   | T2
VEXTRACTF32X8 | W:ymm1/m256{k1}{z}, zmm2, imm8               | MRI  | EVEX.512.66.0F3A.W0 1B /r ib   | T8
@ 2C VEXTRACTF128/VEXTRACTF32x4/VEXTRACTF64x2/VEXTRACTF32x8/VEXTRACTF64x4; cross; feature=avx512f
VEXTRACTF64X4 | W:ymm1/m256{k1}{z}, zmm2, imm8               | MRI  | EVEX.512.66.0F3A.W1 1B /r ib   | T4
@ 2C VEXTRACTI128/VEXTRACTI32x4/VEXTRACTI64x2/VEXTRACTI32x8/VEXTRACTI64x4; cross; feature=avx512f
VEXTRACTI32X4 | W:xmm1/m128{k1}{z}, ymm2, imm8               | MRI  | EVEX.256.66.0F3A.W0 39 /r ib   | T4
VEXTRACTI32X4 | W:xmm1/m128{k1}{z}, zmm2, imm8               | MRI  | EVEX.512.66.0F3A.W0 39 /r ib   | T4
@ 2C VEXTRACTI128/VEXTRACTI32x4/VEXTRACTI64x2/VEXTRACTI32x8/VEXTRACTI64x4; cross; feature=avx512dq
VEXTRACTI64X2 | W:xmm1/m128{k1}{z}, ymm2, imm8               | MRI  | EVEX.256.66.0F3A.W1 39 /r ib   | T2
VEXTRACTI64X2 | W:xmm1/m128{k1}{z}, zmm2, imm8               | MRI  | EVEX.512.66.0F3A.W1 39 /r ib   | T2
VEXTRACTI32X8 | W:ymm1/m256{k1}{z}, zmm2, imm8               | MRI  | EVEX.512.66.0F3A.W0 3B /r ib   | T8
@ 2C VEXTRACTI128/VEXTRACTI32x4/VEXTRACTI64x2/VEXTRACTI32x8/VEXTRACTI64x4; cross; feature=avx512f
VEXTRACTI64X4 | W:ymm1/m256{k1}{z}, zmm2, imm8               | MRI  | EVEX.512.66.0F3A.W1 3B /r ib   | T4
@ 2C VINSERTF128/VINSERTF32x4/VINSERTF64x2/VINSERTF32x8/VINSERTF64x4; cross; feature=avx512f
VINSERTF32X4  | W:ymm1{k1}{z}, ymm2, xmm3/m128, imm8         | RVMI | EVEX.256.66.0F3A.W0 18 /r ib   | T4
VINSERTF32X4  | W:zmm1{k1}{z}, zmm2, xmm3/m128, imm8         | RVMI | EVEX.512.66.0F3A.W0 18 /r ib   | T4
@ 2C VINSERTF128/VINSERTF32x4/VINSERTF64x2/VINSERTF32x8/VINSERTF64x4; cross; feature=avx512dq
VINSERTF64X2  | W:ymm1{k1}{z}, ymm2, xmm3/m128, imm8         | RVMI | EVEX.256.66.0F3A.W1 18 /r ib   | T2
VINSERTF64X2  | W:zmm1{k1}{z}, zmm2, xmm3/m128, imm8         | RVMI | EVEX.512.66.0F3A.W1 18 /r ib   | T2
VINSERTF32X8  | W:zmm1{k1}{z}, zmm2, ymm3/m256, imm8         | RVMI | EVEX.512.66.0F3A.W0 1A /r ib   | T8
@ 2C VINSERTF128/VINSERTF32x4/VINSERTF64x2/VINSERTF32x8/VINSERTF64x4; cross; feature=avx512f
VINSERTF64X4  | W:zmm1{k1}{z}, zmm2, ymm3/m256, imm8         | RVMI | EVEX.512.66.0F3A.W1 1A /r ib   | T4
@ 2C VINSERTI128/VINSERTI32x4/VINSERTI64x2/VINSERTI32x8/VINSERTI64x4; cross; feature=avx512f
VINSERTI32X4  | W:ymm1{k1}{z}, ymm2, xmm3/m128, imm8         | RVMI | EVEX.256.66.0F3A.W0 38 /r ib   | T4
VINSERTI32X4  | W:zmm1{k1}{z}, zmm2, xmm3/m128, imm8         | RVMI | EVEX.512.66.0F3A.W0 38 /r ib   | T4
@ 2C VINSERTI128/VINSERTI32x4/VINSERTI64x2/VINSERTI32x8/VINSERTI64x4; cross; feature=avx512dq
VINSERTI64X2  | W:ymm1{k1}{z}, ymm2, xmm3/m128, imm8         | RVMI | EVEX.256.66.0F3A.W1 38 /r ib   | T2
VINSERTI64X2  | W:zmm1{k1}{z}, zmm2, xmm3/m128, imm8         | RVMI | EVEX.512.66.0F3A.W1 38 /r ib   | T2
VINSERTI32X8  | W:zmm1{k1}{z}, zmm2, ymm3/m256, imm8         | RVMI | EVEX.512.66.0F3A.W0 3A /r ib   | T8
@ 2C VINSERTI128/VINSERTI32x4/VINSERTI64x2/VINSERTI32x8/VINSERTI64x4; cross; feature=avx512f
VINSERTI64X4  | W:zmm1{k1}{z}, zmm2, ymm3/m256, imm8         | RVMI | EVEX.512.66.0F3A.W1 3A /r ib   | T4
@ 2A INSERTPS; shuf; feature=avx512f
VINSERTPS     | W:xmm1, xmm2, xmm3/m32, imm8                 | RVMI | EVEX.128.66.0F3A.W0 21 /r ib   | T1S
@ 2B PINSRB/PINSRD/PINSRQ; shuf; feature=avx512bw
VPINSRB       | W:xmm1, xmm2, r32/m8, imm8                   | RVMI | EVEX.128.66.0F3A.W0 20 /r ib   | T1S
@ 2B PINSRB/PINSRD/PINSRQ; shuf; feature=avx512dq
VPINSRD       | W:xmm1, xmm2, r/m32, imm8                    | RVMI | EVEX.128.66.0F3A.W0 22 /r ib   | T1S
VPINSRQ       | W:xmm1, xmm2, r/m64, imm8                    | RVMI | EVEX.128.66.0F3A.W1 22 /r ib   | T1S
@ 2B PINSRW; shuf; feature=avx512bw
VPINSRW       | W:xmm1, xmm2, r32/m16, imm8                  | RVMI | EVEX.128.66.0F.W0 C4 /r ib     | T1S
@ 2B PEXTRB/PEXTRD/PEXTRQ; xfer; feature=avx512bw
VPEXTRB       | W:r32/m8, xmm2, imm8                         | MRI  | EVEX.128.66.0F3A.W0 14 /r ib   | T1S
@ 2B PEXTRB/PEXTRD/PEXTRQ; xfer; feature=avx512dq
VPEXTRD       | W:r/m32, xmm2, imm8                          | MRI  | EVEX.128.66.0F3A.W0 16 /r ib   | T1S
VPEXTRQ       | W:r/m64, xmm2, imm8                          | MRI  | EVEX.128.66.0F3A.W1 16 /r ib   | T1S
@ 2B PEXTRW; xfer; feature=avx512bw
VPEXTRW       | W:r32, xmm1, imm8                            | RMI  | EVEX.128.66.0F.W0 C5 /r ib
VPEXTRW       | W:r32/m16, xmm2, imm8                        | MRI  | EVEX.128.66.0F3A.W0 15 /r ib   | T1S
@ 2A EXTRACTPS; xfer; feature=avx512f
VEXTRACTPS    | W:r/m32, xmm1, imm8                          | MRI  | EVEX.128.66.0F3A.W0 17 /r ib   | T1S
"""
