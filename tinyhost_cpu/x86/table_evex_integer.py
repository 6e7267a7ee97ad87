"""Vector instructions, part 5 (EVEX): integers (AVX-512).

``forms`` says how lines are read.
"""
TABLE = """
@ 2B PADDB/PADDW/PADDD/PADDQ; alu; feature=avx512bw
VPADDB        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG FC /r       | FVM
VPADDB        | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG FC /r       | FVM
VPADDB        | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG FC /r       | FVM
VPADDW        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG FD /r       | FVM
VPADDW        | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG FD /r       | FVM
VPADDW        | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG FD /r       | FVM
@ 2B PADDB/PADDW/PADDD/PADDQ; alu; feature=avx512f
VPADDD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F.W0 FE /r        | FV
VPADDD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F.W0 FE /r        | FV
VPADDD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F.W0 FE /r        | FV
VPADDQ        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 D4 /r        | FV
VPADDQ        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 D4 /r        | FV
VPADDQ        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 D4 /r        | FV
@ 2B PSUBB/PSUBW/PSUBD; alu; feature=avx512bw
VPSUBB        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG F8 /r       | FVM
VPSUBB        | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG F8 /r       | FVM
VPSUBB        | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG F8 /r       | FVM
VPSUBW        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG F9 /r       | FVM
VPSUBW        | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG F9 /r       | FVM
VPSUBW        | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG F9 /r       | FVM
@ 2B PSUBB/PSUBW/PSUBD; alu; feature=avx512f
VPSUBD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F.W0 FA /r        | FV
VPSUBD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F.W0 FA /r        | FV
VPSUBD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F.W0 FA /r        | FV
@ 2B PSUBQ; alu; feature=avx512f
VPSUBQ        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 FB /r        | FV
VPSUBQ        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 FB /r        | FV
VPSUBQ        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 FB /r        | FV
@ 2B PADDSB/PADDSW; alu; feature=avx512bw
VPADDSB       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG EC /r       | FVM
VPADDSB       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG EC /r       | FVM
VPADDSB       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG EC /r       | FVM
VPADDSW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG ED /r       | FVM
VPADDSW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG ED /r       | FVM
VPADDSW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG ED /r       | FVM
@ 2B PADDUSB/PADDUSW; alu; feature=avx512bw
VPADDUSB      | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG DC /r       | FVM
VPADDUSB      | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG DC /r       | FVM
VPADDUSB      | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG DC /r       | FVM
VPADDUSW      | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG DD /r       | FVM
VPADDUSW      | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG DD /r       | FVM
VPADDUSW      | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG DD /r       | FVM
@ 2B PSUBSB/PSUBSW; alu; feature=avx512bw
VPSUBSB       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG E8 /r       | FVM
VPSUBSB       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG E8 /r       | FVM
VPSUBSB       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG E8 /r       | FVM
VPSUBSW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG E9 /r       | FVM
VPSUBSW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG E9 /r       | FVM
VPSUBSW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG E9 /r       | FVM
@ 2B PSUBUSB/PSUBUSW; alu; feature=avx512bw
VPSUBUSB      | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG D8 /r       | FVM
VPSUBUSB      | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG D8 /r       | FVM
VPSUBUSB      | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG D8 /r       | FVM
VPSUBUSW      | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG D9 /r       | FVM
VPSUBUSW      | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG D9 /r       | FVM
VPSUBUSW      | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG D9 /r       | FVM
@ 2B PAVGB/PAVGW; alu; feature=avx512bw
VPAVGB        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG E0 /r       | FVM
VPAVGB        | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG E0 /r       | FVM
VPAVGB        | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG E0 /r       | FVM
VPAVGW        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG E3 /r       | FVM
VPAVGW        | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG E3 /r       | FVM
VPAVGW        | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG E3 /r       | FVM
@ 2B PMULLW; mul; feature=avx512bw
VPMULLW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG D5 /r       | FVM
VPMULLW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG D5 /r       | FVM
VPMULLW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG D5 /r       | FVM
@ 2B PMULLD/PMULLQ; mul2; feature=avx512f
VPMULLD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 40 /r      | FV
VPMULLD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 40 /r      | FV
VPMULLD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 40 /r      | FV
@ 2B PMULLD/PMULLQ; mul2; feature=avx512dq
VPMULLQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 40 /r      | FV
VPMULLQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 40 /r      | FV
VPMULLQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 40 /r      | FV
@ 2B PMULUDQ; mul; feature=avx512f
VPMULUDQ      | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 F4 /r        | FV
VPMULUDQ      | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 F4 /r        | FV
VPMULUDQ      | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 F4 /r        | FV
@ 2B PMULDQ; mul; feature=avx512f
VPMULDQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 28 /r      | FV
VPMULDQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 28 /r      | FV
VPMULDQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 28 /r      | FV
@ 2B PMULHW; mul; feature=avx512bw
VPMULHW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG E5 /r       | FVM
VPMULHW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG E5 /r       | FVM
VPMULHW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG E5 /r       | FVM
@ 2B PMULHUW; mul; feature=avx512bw
VPMULHUW      | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG E4 /r       | FVM
VPMULHUW      | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG E4 /r       | FVM
VPMULHUW      | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG E4 /r       | FVM
@ 2B PMULHRSW; mul; feature=avx512bw
VPMULHRSW     | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.WIG 0B /r     | FVM
VPMULHRSW     | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.WIG 0B /r     | FVM
VPMULHRSW     | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.WIG 0B /r     | FVM
@ 2B PMADDWD; mul; feature=avx512bw
VPMADDWD      | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG F5 /r       | FVM
VPMADDWD      | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG F5 /r       | FVM
VPMADDWD      | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG F5 /r       | FVM
@ 2B PMADDUBSW; mul; feature=avx512bw
VPMADDUBSW    | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.WIG 04 /r     | FVM
VPMADDUBSW    | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.WIG 04 /r     | FVM
VPMADDUBSW    | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.WIG 04 /r     | FVM
@ 2B PSADBW; mul; feature=avx512bw
VPSADBW       | W:xmm1, xmm2, xmm3/m128                      | RVM  | EVEX.128.66.0F.WIG F6 /r       | FVM
VPSADBW       | W:ymm1, ymm2, ymm3/m256                      | RVM  | EVEX.256.66.0F.WIG F6 /r       | FVM
VPSADBW       | W:zmm1, zmm2, zmm3/m512                      | RVM  | EVEX.512.66.0F.WIG F6 /r       | FVM
@ 2B PMINSB/PMINSW; alu; feature=avx512bw
VPMINSB       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.WIG 38 /r     | FVM
VPMINSB       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.WIG 38 /r     | FVM
VPMINSB       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.WIG 38 /r     | FVM
VPMINSW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG EA /r       | FVM
VPMINSW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG EA /r       | FVM
VPMINSW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG EA /r       | FVM
@ 2B PMINSD/PMINSQ; alu; feature=avx512f
VPMINSD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 39 /r      | FV
VPMINSD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 39 /r      | FV
VPMINSD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 39 /r      | FV
VPMINSQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 39 /r      | FV
VPMINSQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 39 /r      | FV
VPMINSQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 39 /r      | FV
@ 2B PMINUB/PMINUW; alu; feature=avx512bw
VPMINUB       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG DA /r       | FVM
VPMINUB       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG DA /r       | FVM
VPMINUB       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG DA /r       | FVM
VPMINUW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.WIG 3A /r     | FVM
VPMINUW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.WIG 3A /r     | FVM
VPMINUW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.WIG 3A /r     | FVM
@ 2B PMINUD/PMINUQ; alu; feature=avx512f
VPMINUD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 3B /r      | FV
VPMINUD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 3B /r      | FV
VPMINUD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 3B /r      | FV
VPMINUQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 3B /r      | FV
VPMINUQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 3B /r      | FV
VPMINUQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 3B /r      | FV
@ 2B PMAXSB/PMAXSW; alu; feature=avx512bw
VPMAXSB       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.WIG 3C /r     | FVM
VPMAXSB       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.WIG 3C /r     | FVM
VPMAXSB       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.WIG 3C /r     | FVM
VPMAXSW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG EE /r       | FVM
VPMAXSW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG EE /r       | FVM
VPMAXSW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG EE /r       | FVM
@ 2B PMAXSD/PMAXSQ; alu; feature=avx512f
VPMAXSD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 3D /r      | FV
VPMAXSD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 3D /r      | FV
VPMAXSD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 3D /r      | FV
VPMAXSQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 3D /r      | FV
VPMAXSQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 3D /r      | FV
VPMAXSQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 3D /r      | FV
@ 2B PMAXUB/PMAXUW; alu; feature=avx512bw
VPMAXUB       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG DE /r       | FVM
VPMAXUB       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F.WIG DE /r       | FVM
VPMAXUB       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F.WIG DE /r       | FVM
VPMAXUW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.WIG 3E /r     | FVM
VPMAXUW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.WIG 3E /r     | FVM
VPMAXUW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.WIG 3E /r     | FVM
@ 2B PMAXUD/PMAXUQ; alu; feature=avx512f
VPMAXUD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 3F /r      | FV
VPMAXUD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 3F /r      | FV
VPMAXUD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 3F /r      | FV
VPMAXUQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 3F /r      | FV
VPMAXUQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 3F /r      | FV
VPMAXUQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 3F /r      | FV
@ 2B PABSB/PABSW/PABSD/PABSQ; alu; feature=avx512bw
VPABSB        | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F38.WIG 1C /r     | FVM
VPABSB        | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F38.WIG 1C /r     | FVM
VPABSB        | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F38.WIG 1C /r     | FVM
VPABSW        | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F38.WIG 1D /r     | FVM
VPABSW        | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F38.WIG 1D /r     | FVM
VPABSW        | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F38.WIG 1D /r     | FVM
@ 2B PABSB/PABSW/PABSD/PABSQ; alu; feature=avx512f
VPABSD        | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.66.0F38.W0 1E /r      | FV
VPABSD        | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.66.0F38.W0 1E /r      | FV
VPABSD        | W:zmm1{k1}{z}, zmm2/m512/m32bcst             | RM   | EVEX.512.66.0F38.W0 1E /r      | FV
VPABSQ        | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F38.W1 1F /r      | FV
VPABSQ        | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F38.W1 1F /r      | FV
VPABSQ        | W:zmm1{k1}{z}, zmm2/m512/m64bcst             | RM   | EVEX.512.66.0F38.W1 1F /r      | FV
@ 2B PAND; alu; feature=avx512f
VPANDD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F.W0 DB /r        | FV
VPANDD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F.W0 DB /r        | FV
VPANDD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F.W0 DB /r        | FV
VPANDQ        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 DB /r        | FV
VPANDQ        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 DB /r        | FV
VPANDQ        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 DB /r        | FV
@ 2B PANDN; alu; feature=avx512f
VPANDND       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F.W0 DF /r        | FV
VPANDND       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F.W0 DF /r        | FV
VPANDND       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F.W0 DF /r        | FV
VPANDNQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 DF /r        | FV
VPANDNQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 DF /r        | FV
VPANDNQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 DF /r        | FV
@ 2B POR; alu; feature=avx512f
VPORD         | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F.W0 EB /r        | FV
VPORD         | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F.W0 EB /r        | FV
VPORD         | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F.W0 EB /r        | FV
VPORQ         | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 EB /r        | FV
VPORQ         | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 EB /r        | FV
VPORQ         | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 EB /r        | FV
@ 2B PXOR; alu; feature=avx512f
VPXORD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F.W0 EF /r        | FV
VPXORD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F.W0 EF /r        | FV
VPXORD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F.W0 EF /r        | FV
VPXORQ        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 EF /r        | FV
VPXORQ        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 EF /r        | FV
VPXORQ        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 EF /r        | FV
@ 2C VPTERNLOGD/VPTERNLOGQ; alu; feature=avx512f
VPTERNLOGD    | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst, imm8 | RVMI | EVEX.128.66.0F3A.W0 25 /r ib   | FV
VPTERNLOGD    | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst, imm8 | RVMI | EVEX.256.66.0F3A.W0 25 /r ib   | FV
VPTERNLOGD    | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst, imm8 | RVMI | EVEX.512.66.0F3A.W0 25 /r ib   | FV
VPTERNLOGQ    | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst, imm8 | RVMI | EVEX.128.66.0F3A.W1 25 /r ib   | FV
VPTERNLOGQ    | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst, imm8 | RVMI | EVEX.256.66.0F3A.W1 25 /r ib   | FV
VPTERNLOGQ    | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst, imm8 | RVMI | EVEX.512.66.0F3A.W1 25 /r ib   | FV
@ 2B PSLLW/PSLLD/PSLLQ; alu; feature=avx512bw
VPSLLW        | W:xmm1{k1}{z}, xmm2/m128, imm8               | VMI  | EVEX.128.66.0F.WIG 71 /6 ib    | FVM
VPSLLW        | W:ymm1{k1}{z}, ymm2/m256, imm8               | VMI  | EVEX.256.66.0F.WIG 71 /6 ib    | FVM
VPSLLW        | W:zmm1{k1}{z}, zmm2/m512, imm8               | VMI  | EVEX.512.66.0F.WIG 71 /6 ib    | FVM
VPSLLW        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG F1 /r       | M128
VPSLLW        | W:ymm1{k1}{z}, ymm2, xmm3/m128               | RVM  | EVEX.256.66.0F.WIG F1 /r       | M128
VPSLLW        | W:zmm1{k1}{z}, zmm2, xmm3/m128               | RVM  | EVEX.512.66.0F.WIG F1 /r       | M128
@ 2B PSLLW/PSLLD/PSLLQ; alu; feature=avx512f
VPSLLD        | W:xmm1{k1}{z}, xmm2/m128/m32bcst, imm8       | VMI  | EVEX.128.66.0F.W0 72 /6 ib     | FV
VPSLLD        | W:ymm1{k1}{z}, ymm2/m256/m32bcst, imm8       | VMI  | EVEX.256.66.0F.W0 72 /6 ib     | FV
VPSLLD        | W:zmm1{k1}{z}, zmm2/m512/m32bcst, imm8       | VMI  | EVEX.512.66.0F.W0 72 /6 ib     | FV
VPSLLD        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.W0 F2 /r        | M128
VPSLLD        | W:ymm1{k1}{z}, ymm2, xmm3/m128               | RVM  | EVEX.256.66.0F.W0 F2 /r        | M128
VPSLLD        | W:zmm1{k1}{z}, zmm2, xmm3/m128               | RVM  | EVEX.512.66.0F.W0 F2 /r        | M128
VPSLLQ        | W:xmm1{k1}{z}, xmm2/m128/m64bcst, imm8       | VMI  | EVEX.128.66.0F.W1 73 /6 ib     | FV
VPSLLQ        | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | VMI  | EVEX.256.66.0F.W1 73 /6 ib     | FV
VPSLLQ        | W:zmm1{k1}{z}, zmm2/m512/m64bcst, imm8       | VMI  | EVEX.512.66.0F.W1 73 /6 ib     | FV
VPSLLQ        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.W1 F3 /r        | M128
VPSLLQ        | W:ymm1{k1}{z}, ymm2, xmm3/m128               | RVM  | EVEX.256.66.0F.W1 F3 /r        | M128
VPSLLQ        | W:zmm1{k1}{z}, zmm2, xmm3/m128               | RVM  | EVEX.512.66.0F.W1 F3 /r        | M128
@ 2B PSRLW/PSRLD/PSRLQ; alu; feature=avx512bw
VPSRLW        | W:xmm1{k1}{z}, xmm2/m128, imm8               | VMI  | EVEX.128.66.0F.WIG 71 /2 ib    | FVM
VPSRLW        | W:ymm1{k1}{z}, ymm2/m256, imm8               | VMI  | EVEX.256.66.0F.WIG 71 /2 ib    | FVM
VPSRLW        | W:zmm1{k1}{z}, zmm2/m512, imm8               | VMI  | EVEX.512.66.0F.WIG 71 /2 ib    | FVM
VPSRLW        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG D1 /r       | M128
VPSRLW        | W:ymm1{k1}{z}, ymm2, xmm3/m128               | RVM  | EVEX.256.66.0F.WIG D1 /r       | M128
VPSRLW        | W:zmm1{k1}{z}, zmm2, xmm3/m128               | RVM  | EVEX.512.66.0F.WIG D1 /r       | M128
@ 2B PSRLW/PSRLD/PSRLQ; alu; feature=avx512f
VPSRLD        | W:xmm1{k1}{z}, xmm2/m128/m32bcst, imm8       | VMI  | EVEX.128.66.0F.W0 72 /2 ib     | FV
VPSRLD        | W:ymm1{k1}{z}, ymm2/m256/m32bcst, imm8       | VMI  | EVEX.256.66.0F.W0 72 /2 ib     | FV
VPSRLD        | W:zmm1{k1}{z}, zmm2/m512/m32bcst, imm8       | VMI  | EVEX.512.66.0F.W0 72 /2 ib     | FV
VPSRLD        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.W0 D2 /r        | M128
VPSRLD        | W:ymm1{k1}{z}, ymm2, xmm3/m128               | RVM  | EVEX.256.66.0F.W0 D2 /r        | M128
VPSRLD        | W:zmm1{k1}{z}, zmm2, xmm3/m128               | RVM  | EVEX.512.66.0F.W0 D2 /r        | M128
VPSRLQ        | W:xmm1{k1}{z}, xmm2/m128/m64bcst, imm8       | VMI  | EVEX.128.66.0F.W1 73 /2 ib     | FV
VPSRLQ        | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | VMI  | EVEX.256.66.0F.W1 73 /2 ib     | FV
VPSRLQ        | W:zmm1{k1}{z}, zmm2/m512/m64bcst, imm8       | VMI  | EVEX.512.66.0F.W1 73 /2 ib     | FV
VPSRLQ        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.W1 D3 /r        | M128
VPSRLQ        | W:ymm1{k1}{z}, ymm2, xmm3/m128               | RVM  | EVEX.256.66.0F.W1 D3 /r        | M128
VPSRLQ        | W:zmm1{k1}{z}, zmm2, xmm3/m128               | RVM  | EVEX.512.66.0F.W1 D3 /r        | M128
@ 2B PSRAW/PSRAD/PSRAQ; alu; feature=avx512bw
VPSRAW        | W:xmm1{k1}{z}, xmm2/m128, imm8               | VMI  | EVEX.128.66.0F.WIG 71 /4 ib    | FVM
VPSRAW        | W:ymm1{k1}{z}, ymm2/m256, imm8               | VMI  | EVEX.256.66.0F.WIG 71 /4 ib    | FVM
VPSRAW        | W:zmm1{k1}{z}, zmm2/m512, imm8               | VMI  | EVEX.512.66.0F.WIG 71 /4 ib    | FVM
VPSRAW        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.WIG E1 /r       | M128
VPSRAW        | W:ymm1{k1}{z}, ymm2, xmm3/m128               | RVM  | EVEX.256.66.0F.WIG E1 /r       | M128
VPSRAW        | W:zmm1{k1}{z}, zmm2, xmm3/m128               | RVM  | EVEX.512.66.0F.WIG E1 /r       | M128
@ 2B PSRAW/PSRAD/PSRAQ; alu; feature=avx512f
VPSRAD        | W:xmm1{k1}{z}, xmm2/m128/m32bcst, imm8       | VMI  | EVEX.128.66.0F.W0 72 /4 ib     | FV
VPSRAD        | W:ymm1{k1}{z}, ymm2/m256/m32bcst, imm8       | VMI  | EVEX.256.66.0F.W0 72 /4 ib     | FV
VPSRAD        | W:zmm1{k1}{z}, zmm2/m512/m32bcst, imm8       | VMI  | EVEX.512.66.0F.W0 72 /4 ib     | FV
VPSRAD        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.W0 E2 /r        | M128
VPSRAD        | W:ymm1{k1}{z}, ymm2, xmm3/m128               | RVM  | EVEX.256.66.0F.W0 E2 /r        | M128
VPSRAD        | W:zmm1{k1}{z}, zmm2, xmm3/m128               | RVM  | EVEX.512.66.0F.W0 E2 /r        | M128
VPSRAQ        | W:xmm1{k1}{z}, xmm2/m128/m64bcst, imm8       | VMI  | EVEX.128.66.0F.W1 72 /4 ib     | FV
VPSRAQ        | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | VMI  | EVEX.256.66.0F.W1 72 /4 ib     | FV
VPSRAQ        | W:zmm1{k1}{z}, zmm2/m512/m64bcst, imm8       | VMI  | EVEX.512.66.0F.W1 72 /4 ib     | FV
VPSRAQ        | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F.W1 E2 /r        | M128
VPSRAQ        | W:ymm1{k1}{z}, ymm2, xmm3/m128               | RVM  | EVEX.256.66.0F.W1 E2 /r        | M128
VPSRAQ        | W:zmm1{k1}{z}, zmm2, xmm3/m128               | RVM  | EVEX.512.66.0F.W1 E2 /r        | M128
@ 2C VPSLLVW/VPSLLVD/VPSLLVQ; alu; feature=avx512bw
VPSLLVW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W1 12 /r      | FVM
VPSLLVW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W1 12 /r      | FVM
VPSLLVW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W1 12 /r      | FVM
@ 2C VPSLLVW/VPSLLVD/VPSLLVQ; alu; feature=avx512f
VPSLLVD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 47 /r      | FV
VPSLLVD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 47 /r      | FV
VPSLLVD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 47 /r      | FV
VPSLLVQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 47 /r      | FV
VPSLLVQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 47 /r      | FV
VPSLLVQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 47 /r      | FV
@ 2C VPSRLVW/VPSRLVD/VPSRLVQ; alu; feature=avx512bw
VPSRLVW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W1 10 /r      | FVM
VPSRLVW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W1 10 /r      | FVM
VPSRLVW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W1 10 /r      | FVM
@ 2C VPSRLVW/VPSRLVD/VPSRLVQ; alu; feature=avx512f
VPSRLVD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 45 /r      | FV
VPSRLVD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 45 /r      | FV
VPSRLVD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 45 /r      | FV
VPSRLVQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 45 /r      | FV
VPSRLVQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 45 /r      | FV
VPSRLVQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 45 /r      | FV
@ 2C VPSRAVW/VPSRAVD/VPSRAVQ; alu; feature=avx512bw
VPSRAVW       | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W1 11 /r      | FVM
VPSRAVW       | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W1 11 /r      | FVM
VPSRAVW       | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W1 11 /r      | FVM
@ 2C VPSRAVW/VPSRAVD/VPSRAVQ; alu; feature=avx512f
VPSRAVD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 46 /r      | FV
VPSRAVD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 46 /r      | FV
VPSRAVD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 46 /r      | FV
VPSRAVQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 46 /r      | FV
VPSRAVQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 46 /r      | FV
VPSRAVQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 46 /r      | FV
@ 2C PROLD/PROLVD/PROLQ/PROLVQ; alu; feature=avx512f
VPROLD        | W:xmm1{k1}{z}, xmm2/m128/m32bcst, imm8       | VMI  | EVEX.128.66.0F.W0 72 /1 ib     | FV
VPROLD        | W:ymm1{k1}{z}, ymm2/m256/m32bcst, imm8       | VMI  | EVEX.256.66.0F.W0 72 /1 ib     | FV
VPROLD        | W:zmm1{k1}{z}, zmm2/m512/m32bcst, imm8       | VMI  | EVEX.512.66.0F.W0 72 /1 ib     | FV
VPROLVD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 15 /r      | FV
VPROLVD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 15 /r      | FV
VPROLVD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 15 /r      | FV
VPROLQ        | W:xmm1{k1}{z}, xmm2/m128/m64bcst, imm8       | VMI  | EVEX.128.66.0F.W1 72 /1 ib     | FV
VPROLQ        | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | VMI  | EVEX.256.66.0F.W1 72 /1 ib     | FV
VPROLQ        | W:zmm1{k1}{z}, zmm2/m512/m64bcst, imm8       | VMI  | EVEX.512.66.0F.W1 72 /1 ib     | FV
VPROLVQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 15 /r      | FV
VPROLVQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 15 /r      | FV
VPROLVQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 15 /r      | FV
@ 2C PRORD/PRORVD/PRORQ/PRORVQ; alu; feature=avx512f
VPRORD        | W:xmm1{k1}{z}, xmm2/m128/m32bcst, imm8       | VMI  | EVEX.128.66.0F.W0 72 /0 ib     | FV
VPRORD        | W:ymm1{k1}{z}, ymm2/m256/m32bcst, imm8       | VMI  | EVEX.256.66.0F.W0 72 /0 ib     | FV
VPRORD        | W:zmm1{k1}{z}, zmm2/m512/m32bcst, imm8       | VMI  | EVEX.512.66.0F.W0 72 /0 ib     | FV
VPRORVD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 14 /r      | FV
VPRORVD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 14 /r      | FV
VPRORVD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 14 /r      | FV
VPRORQ        | W:xmm1{k1}{z}, xmm2/m128/m64bcst, imm8       | VMI  | EVEX.128.66.0F.W1 72 /0 ib     | FV
VPRORQ        | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | VMI  | EVEX.256.66.0F.W1 72 /0 ib     | FV
VPRORQ        | W:zmm1{k1}{z}, zmm2/m512/m64bcst, imm8       | VMI  | EVEX.512.66.0F.W1 72 /0 ib     | FV
VPRORVQ       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 14 /r      | FV
VPRORVQ       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 14 /r      | FV
VPRORVQ       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 14 /r      | FV
@ 2B PSLLDQ; shuf; feature=avx512bw
VPSLLDQ       | W:xmm1, xmm2/m128, imm8                      | VMI  | EVEX.128.66.0F.WIG 73 /7 ib    | FVM
VPSLLDQ       | W:ymm1, ymm2/m256, imm8                      | VMI  | EVEX.256.66.0F.WIG 73 /7 ib    | FVM
VPSLLDQ       | W:zmm1, zmm2/m512, imm8                      | VMI  | EVEX.512.66.0F.WIG 73 /7 ib    | FVM
@ 2B PSRLDQ; shuf; feature=avx512bw
VPSRLDQ       | W:xmm1, xmm2/m128, imm8                      | VMI  | EVEX.128.66.0F.WIG 73 /3 ib    | FVM
VPSRLDQ       | W:ymm1, ymm2/m256, imm8                      | VMI  | EVEX.256.66.0F.WIG 73 /3 ib    | FVM
VPSRLDQ       | W:zmm1, zmm2/m512, imm8                      | VMI  | EVEX.512.66.0F.WIG 73 /3 ib    | FVM
@ 2C VPLZCNTD/VPLZCNTQ; alu3; feature=avx512cd
VPLZCNTD      | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.66.0F38.W0 44 /r      | FV
VPLZCNTD      | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.66.0F38.W0 44 /r      | FV
VPLZCNTD      | W:zmm1{k1}{z}, zmm2/m512/m32bcst             | RM   | EVEX.512.66.0F38.W0 44 /r      | FV
VPLZCNTQ      | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F38.W1 44 /r      | FV
VPLZCNTQ      | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F38.W1 44 /r      | FV
VPLZCNTQ      | W:zmm1{k1}{z}, zmm2/m512/m64bcst             | RM   | EVEX.512.66.0F38.W1 44 /r      | FV
@ 2C VPCONFLICTD/VPCONFLICTQ; conflict; feature=avx512cd
VPCONFLICTD   | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.66.0F38.W0 C4 /r      | FV
VPCONFLICTD   | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.66.0F38.W0 C4 /r      | FV
VPCONFLICTD   | W:zmm1{k1}{z}, zmm2/m512/m32bcst             | RM   | EVEX.512.66.0F38.W0 C4 /r      | FV
VPCONFLICTQ   | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F38.W1 C4 /r      | FV
VPCONFLICTQ   | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F38.W1 C4 /r      | FV
VPCONFLICTQ   | W:zmm1{k1}{z}, zmm2/m512/m64bcst             | RM   | EVEX.512.66.0F38.W1 C4 /r      | FV
"""
