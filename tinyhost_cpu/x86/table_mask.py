"""Instructions that make and use opmasks (AVX-512): mask logic, compares into masks, blends under masks.

``forms`` says how lines are read.
"""
TABLE = """
@ 2A KADDW/KADDB/KADDQ/KADDD; alu3; feature=avx512dq
KADDB         | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W0 4A /r
KADDW         | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W0 4A /r
@ 2A KADDW/KADDB/KADDQ/KADDD; alu3; feature=avx512bw
KADDD         | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W1 4A /r
KADDQ         | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W1 4A /r
@ 2A KANDW/KANDB/KANDQ/KANDD; alu; feature=avx512dq
KANDB         | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W0 41 /r
@ 2A KANDW/KANDB/KANDQ/KANDD; alu; feature=avx512f
KANDW         | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W0 41 /r
@ 2A KANDW/KANDB/KANDQ/KANDD; alu; feature=avx512bw
KANDD         | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W1 41 /r
KANDQ         | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W1 41 /r
@ 2A KANDNW/KANDNB/KANDNQ/KANDND; alu; feature=avx512dq
KANDNB        | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W0 42 /r
@ 2A KANDNW/KANDNB/KANDNQ/KANDND; alu; feature=avx512f
KANDNW        | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W0 42 /r
@ 2A KANDNW/KANDNB/KANDNQ/KANDND; alu; feature=avx512bw
KANDND        | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W1 42 /r
KANDNQ        | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W1 42 /r
@ 2A KMOVW/KMOVB/KMOVQ/KMOVD; xfer; feature=avx512dq
KMOVB         | W:k1, k2/m8                                  | RM   | VEX.L0.66.0F.W0 90 /r
KMOVB         | W:m8, k1                                     | MR   | VEX.L0.66.0F.W0 91 /r
KMOVB         | W:k1, r32                                    | RM   | VEX.L0.66.0F.W0 92 /r
KMOVB         | W:r32, k1                                    | RM   | VEX.L0.66.0F.W0 93 /r
@ 2A KMOVW/KMOVB/KMOVQ/KMOVD; xfer; feature=avx512f
KMOVW         | W:k1, k2/m16                                 | RM   | VEX.L0.0F.W0 90 /r
KMOVW         | W:m16, k1                                    | MR   | VEX.L0.0F.W0 91 /r
KMOVW         | W:k1, r32                                    | RM   | VEX.L0.0F.W0 92 /r
KMOVW         | W:r32, k1                                    | RM   | VEX.L0.0F.W0 93 /r
@ 2A KMOVW/KMOVB/KMOVQ/KMOVD; xfer; feature=avx512bw
KMOVD         | W:k1, k2/m32                                 | RM   | VEX.L0.66.0F.W1 90 /r
KMOVD         | W:m32, k1                                    | MR   | VEX.L0.66.0F.W1 91 /r
KMOVD         | W:k1, r32                                    | RM   | VEX.L0.F2.0F.W0 92 /r
KMOVD         | W:r32, k1                                    | RM   | VEX.L0.F2.0F.W0 93 /r
KMOVQ         | W:k1, k2/m64                                 | RM   | VEX.L0.0F.W1 90 /r
KMOVQ         | W:m64, k1                                    | MR   | VEX.L0.0F.W1 91 /r
KMOVQ         | W:k1, r64                                    | RM   | VEX.L0.F2.0F.W1 92 /r
KMOVQ         | W:r64, k1                                    | RM   | VEX.L0.F2.0F.W1 93 /r
@ 2A KNOTW/KNOTB/KNOTQ/KNOTD; alu; feature=avx512dq
KNOTB         | W:k1, k2                                     | RM   | VEX.L0.66.0F.W0 44 /r
@ 2A KNOTW/KNOTB/KNOTQ/KNOTD; alu; feature=avx512f
KNOTW         | W:k1, k2                                     | RM   | VEX.L0.0F.W0 44 /r
@ 2A KNOTW/KNOTB/KNOTQ/KNOTD; alu; feature=avx512bw
KNOTD         | W:k1, k2                                     | RM   | VEX.L0.66.0F.W1 44 /r
KNOTQ         | W:k1, k2                                     | RM   | VEX.L0.0F.W1 44 /r
@ 2A KORW/KORB/KORQ/KORD; alu; feature=avx512dq
KORB          | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W0 45 /r
@ 2A KORW/KORB/KORQ/KORD; alu; feature=avx512f
KORW          | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W0 45 /r
@ 2A KORW/KORB/KORQ/KORD; alu; feature=avx512bw
KORD          | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W1 45 /r
KORQ          | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W1 45 /r
@ 2A KORTESTW/KORTESTB/KORTESTQ/KORTESTD; alu; flags=w; feature=avx512dq
KORTESTB      | k1, k2                                       | RM   | VEX.L0.66.0F.W0 98 /r
@ 2A KORTESTW/KORTESTB/KORTESTQ/KORTESTD; alu; flags=w; feature=avx512f
KORTESTW      | k1, k2                                       | RM   | VEX.L0.0F.W0 98 /r
@ 2A KORTESTW/KORTESTB/KORTESTQ/KORTESTD; alu; flags=w; feature=avx512bw
KORTESTD      | k1, k2                                       | RM   | VEX.L0.66.0F.W1 98 /r
KORTESTQ      | k1, k2                                       | RM   | VEX.L0.0F.W1 98 /r
@ 2A KSHIFTLW/KSHIFTLB/KSHIFTLQ/KSHIFTLD; alu3; feature=avx512dq
KSHIFTLB      | W:k1, k2, imm8                               | RMI  | VEX.L0.66.0F3A.W0 32 /r ib
@ 2A KSHIFTLW/KSHIFTLB/KSHIFTLQ/KSHIFTLD; alu3; feature=avx512f
KSHIFTLW      | W:k1, k2, imm8                               | RMI  | VEX.L0.66.0F3A.W1 32 /r ib
@ 2A KSHIFTLW/KSHIFTLB/KSHIFTLQ/KSHIFTLD; alu3; feature=avx512bw
KSHIFTLD      | W:k1, k2, imm8                               | RMI  | VEX.L0.66.0F3A.W0 33 /r ib
KSHIFTLQ      | W:k1, k2, imm8                               | RMI  | VEX.L0.66.0F3A.W1 33 /r ib
@ 2A KSHIFTRW/KSHIFTRB/KSHIFTRQ/KSHIFTRD; alu3; feature=avx512dq
KSHIFTRB      | W:k1, k2, imm8                               | RMI  | VEX.L0.66.0F3A.W0 30 /r ib
@ 2A KSHIFTRW/KSHIFTRB/KSHIFTRQ/KSHIFTRD; alu3; feature=avx512f
KSHIFTRW      | W:k1, k2, imm8                               | RMI  | VEX.L0.66.0F3A.W1 30 /r ib
@ 2A KSHIFTRW/KSHIFTRB/KSHIFTRQ/KSHIFTRD; alu3; feature=avx512bw
KSHIFTRD      | W:k1, k2, imm8                               | RMI  | VEX.L0.66.0F3A.W0 31 /r ib
KSHIFTRQ      | W:k1, k2, imm8                               | RMI  | VEX.L0.66.0F3A.W1 31 /r ib
@ 2A KTESTW/KTESTB/KTESTQ/KTESTD; alu; flags=w; feature=avx512dq
KTESTB        | k1, k2                                       | RM   | VEX.L0.66.0F.W0 99 /r
KTESTW        | k1, k2                                       | RM   | VEX.L0.0F.W0 99 /r
@ 2A KTESTW/KTESTB/KTESTQ/KTESTD; alu; flags=w; feature=avx512bw
KTESTD        | k1, k2                                       | RM   | VEX.L0.66.0F.W1 99 /r
KTESTQ        | k1, k2                                       | RM   | VEX.L0.0F.W1 99 /r
@ 2A KUNPCKBW/KUNPCKWD/KUNPCKDQ; alu3; feature=avx512f
KUNPCKBW      | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W0 4B /r
@ 2A KUNPCKBW/KUNPCKWD/KUNPCKDQ; alu3; feature=avx512bw
KUNPCKWD      | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W0 4B /r
KUNPCKDQ      | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W1 4B /r
@ 2A KXNORW/KXNORB/KXNORQ/KXNORD; alu; feature=avx512dq
KXNORB        | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W0 46 /r
@ 2A KXNORW/KXNORB/KXNORQ/KXNORD; alu; feature=avx512f
KXNORW        | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W0 46 /r
@ 2A KXNORW/KXNORB/KXNORQ/KXNORD; alu; feature=avx512bw
KXNORD        | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W1 46 /r
KXNORQ        | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W1 46 /r
@ 2A KXORW/KXORB/KXORQ/KXORD; alu; feature=avx512dq
KXORB         | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W0 47 /r
@ 2A KXORW/KXORB/KXORQ/KXORD; alu; feature=avx512f
KXORW         | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W0 47 /r
@ 2A KXORW/KXORB/KXORQ/KXORD; alu; feature=avx512bw
KXORD         | W:k1, k2, k3                                 | RVM  | VEX.L1.66.0F.W1 47 /r
KXORQ         | W:k1, k2, k3                                 | RVM  | VEX.L1.0F.W1 47 /r
@ 2C VPMOVM2B/VPMOVM2W/VPMOVM2D/VPMOVM2Q; xfer; feature=avx512bw
VPMOVM2B      | W:xmm1, k1                                   | RM   | EVEX.128.F3.0F38.W0 28 /r
VPMOVM2B      | W:ymm1, k1                                   | RM   | EVEX.256.F3.0F38.W0 28 /r
VPMOVM2B      | W:zmm1, k1                                   | RM   | EVEX.512.F3.0F38.W0 28 /r
VPMOVM2W      | W:xmm1, k1                                   | RM   | EVEX.128.F3.0F38.W1 28 /r
VPMOVM2W      | W:ymm1, k1                                   | RM   | EVEX.256.F3.0F38.W1 28 /r
VPMOVM2W      | W:zmm1, k1                                   | RM   | EVEX.512.F3.0F38.W1 28 /r
@ 2C VPMOVM2B/VPMOVM2W/VPMOVM2D/VPMOVM2Q; xfer; feature=avx512dq
VPMOVM2D      | W:xmm1, k1                                   | RM   | EVEX.128.F3.0F38.W0 38 /r
VPMOVM2D      | W:ymm1, k1                                   | RM   | EVEX.256.F3.0F38.W0 38 /r
VPMOVM2D      | W:zmm1, k1                                   | RM   | EVEX.512.F3.0F38.W0 38 /r
VPMOVM2Q      | W:xmm1, k1                                   | RM   | EVEX.128.F3.0F38.W1 38 /r
VPMOVM2Q      | W:ymm1, k1                                   | RM   | EVEX.256.F3.0F38.W1 38 /r
VPMOVM2Q      | W:zmm1, k1                                   | RM   | EVEX.512.F3.0F38.W1 38 /r
@ 2C VPMOVB2M/VPMOVW2M/VPMOVD2M/VPMOVQ2M; xfer; feature=avx512bw
VPMOVB2M      | W:k1, xmm1                                   | RM   | EVEX.128.F3.0F38.W0 29 /r
VPMOVB2M      | W:k1, ymm1                                   | RM   | EVEX.256.F3.0F38.W0 29 /r
VPMOVB2M      | W:k1, zmm1                                   | RM   | EVEX.512.F3.0F38.W0 29 /r
VPMOVW2M      | W:k1, xmm1                                   | RM   | EVEX.128.F3.0F38.W1 29 /r
VPMOVW2M      | W:k1, ymm1                                   | RM   | EVEX.256.F3.0F38.W1 29 /r
VPMOVW2M      | W:k1, zmm1                                   | RM   | EVEX.512.F3.0F38.W1 29 /r
@ 2C VPMOVB2M/VPMOVW2M/VPMOVD2M/VPMOVQ2M; xfer; feature=avx512dq
VPMOVD2M      | W:k1, xmm1                                   | RM   | EVEX.128.F3.0F38.W0 39 /r
VPMOVD2M      | W:k1, ymm1                                   | RM   | EVEX.256.F3.0F38.W0 39 /r
VPMOVD2M      | W:k1, zmm1                                   | RM   | EVEX.512.F3.0F38.W0 39 /r
VPMOVQ2M      | W:k1, xmm1                                   | RM   | EVEX.128.F3.0F38.W1 39 /r
VPMOVQ2M      | W:k1, ymm1                                   | RM   | EVEX.256.F3.0F38.W1 39 /r
VPMOVQ2M      | W:k1, zmm1                                   | RM   | EVEX.512.F3.0F38.W1 39 /r
@ 2C VPBROADCASTM; xfer; feature=avx512cd
VPBROADCASTMB2Q | W:xmm1, k1                                   | RM   | EVEX.128.F3.0F38.W1 2A /r
VPBROADCASTMB2Q | W:ymm1, k1                                   | RM   | EVEX.256.F3.0F38.W1 2A /r
VPBROADCASTMB2Q | W:zmm1, k1                                   | RM   | EVEX.512.F3.0F38.W1 2A /r
VPBROADCASTMW2D | W:xmm1, k1                                   | RM   | EVEX.128.F3.0F38.W0 3A /r
VPBROADCASTMW2D | W:ymm1, k1                                   | RM   | EVEX.256.F3.0F38.W0 3A /r
VPBROADCASTMW2D | W:zmm1, k1                                   | RM   | EVEX.512.F3.0F38.W0 3A /r
@ 2C VPCMPB/VPCMPUB; alu3; feature=avx512bw
VPCMPB        | W:k1{k2}, xmm2, xmm3/m128, imm8              | RVMI | EVEX.128.66.0F3A.W0 3F /r ib   | FVM
VPCMPB        | W:k1{k2}, ymm2, ymm3/m256, imm8              | RVMI | EVEX.256.66.0F3A.W0 3F /r ib   | FVM
VPCMPB        | W:k1{k2}, zmm2, zmm3/m512, imm8              | RVMI | EVEX.512.66.0F3A.W0 3F /r ib   | FVM
VPCMPUB       | W:k1{k2}, xmm2, xmm3/m128, imm8              | RVMI | EVEX.128.66.0F3A.W0 3E /r ib   | FVM
VPCMPUB       | W:k1{k2}, ymm2, ymm3/m256, imm8              | RVMI | EVEX.256.66.0F3A.W0 3E /r ib   | FVM
VPCMPUB       | W:k1{k2}, zmm2, zmm3/m512, imm8              | RVMI | EVEX.512.66.0F3A.W0 3E /r ib   | FVM
@ 2C VPCMPW/VPCMPUW; alu3; feature=avx512bw
VPCMPW        | W:k1{k2}, xmm2, xmm3/m128, imm8              | RVMI | EVEX.128.66.0F3A.W1 3F /r ib   | FVM
VPCMPW        | W:k1{k2}, ymm2, ymm3/m256, imm8              | RVMI | EVEX.256.66.0F3A.W1 3F /r ib   | FVM
VPCMPW        | W:k1{k2}, zmm2, zmm3/m512, imm8              | RVMI | EVEX.512.66.0F3A.W1 3F /r ib   | FVM
VPCMPUW       | W:k1{k2}, xmm2, xmm3/m128, imm8              | RVMI | EVEX.128.66.0F3A.W1 3E /r ib   | FVM
VPCMPUW       | W:k1{k2}, ymm2, ymm3/m256, imm8              | RVMI | EVEX.256.66.0F3A.W1 3E /r ib   | FVM
VPCMPUW       | W:k1{k2}, zmm2, zmm3/m512, imm8              | RVMI | EVEX.512.66.0F3A.W1 3E /r ib   | FVM
@ 2C VPCMPD/VPCMPUD; alu3; feature=avx512f
VPCMPD        | W:k1{k2}, xmm2, xmm3/m128/m32bcst, imm8      | RVMI | EVEX.128.66.0F3A.W0 1F /r ib   | FV
VPCMPD        | W:k1{k2}, ymm2, ymm3/m256/m32bcst, imm8      | RVMI | EVEX.256.66.0F3A.W0 1F /r ib   | FV
VPCMPD        | W:k1{k2}, zmm2, zmm3/m512/m32bcst, imm8      | RVMI | EVEX.512.66.0F3A.W0 1F /r ib   | FV
VPCMPUD       | W:k1{k2}, xmm2, xmm3/m128/m32bcst, imm8      | RVMI | EVEX.128.66.0F3A.W0 1E /r ib   | FV
VPCMPUD       | W:k1{k2}, ymm2, ymm3/m256/m32bcst, imm8      | RVMI | EVEX.256.66.0F3A.W0 1E /r ib   | FV
VPCMPUD       | W:k1{k2}, zmm2, zmm3/m512/m32bcst, imm8      | RVMI | EVEX.512.66.0F3A.W0 1E /r ib   | FV
@ 2C VPCMPQ/VPCMPUQ; alu3; feature=avx512f
VPCMPQ        | W:k1{k2}, xmm2, xmm3/m128/m64bcst, imm8      | RVMI | EVEX.128.66.0F3A.W1 1F /r ib   | FV
VPCMPQ        | W:k1{k2}, ymm2, ymm3/m256/m64bcst, imm8      | RVMI | EVEX.256.66.0F3A.W1 1F /r ib   | FV
VPCMPQ        | W:k1{k2}, zmm2, zmm3/m512/m64bcst, imm8      | RVMI | EVEX.512.66.0F3A.W1 1F /r ib   | FV
VPCMPUQ       | W:k1{k2}, xmm2, xmm3/m128/m64bcst, imm8      | RVMI | EVEX.128.66.0F3A.W1 1E /r ib   | FV
VPCMPUQ       | W:k1{k2}, ymm2, ymm3/m256/m64bcst, imm8      | RVMI | EVEX.256.66.0F3A.W1 1E /r ib   | FV
VPCMPUQ       | W:k1{k2}, zmm2, zmm3/m512/m64bcst, imm8      | RVMI | EVEX.512.66.0F3A.W1 1E /r ib   | FV
@ 2B PCMPEQB/PCMPEQW/PCMPEQD; alu; feature=avx512bw
VPCMPEQB      | W:k1{k2}, xmm2, xmm3/m128                    | RVM  | EVEX.128.66.0F.WIG 74 /r       | FVM
VPCMPEQB      | W:k1{k2}, ymm2, ymm3/m256                    | RVM  | EVEX.256.66.0F.WIG 74 /r       | FVM
VPCMPEQB      | W:k1{k2}, zmm2, zmm3/m512                    | RVM  | EVEX.512.66.0F.WIG 74 /r       | FVM
VPCMPEQW      | W:k1{k2}, xmm2, xmm3/m128                    | RVM  | EVEX.128.66.0F.WIG 75 /r       | FVM
VPCMPEQW      | W:k1{k2}, ymm2, ymm3/m256                    | RVM  | EVEX.256.66.0F.WIG 75 /r       | FVM
VPCMPEQW      | W:k1{k2}, zmm2, zmm3/m512                    | RVM  | EVEX.512.66.0F.WIG 75 /r       | FVM
@ 2B PCMPEQB/PCMPEQW/PCMPEQD; alu; feature=avx512f
VPCMPEQD      | W:k1{k2}, xmm2, xmm3/m128/m32bcst            | RVM  | EVEX.128.66.0F.W0 76 /r        | FV
VPCMPEQD      | W:k1{k2}, ymm2, ymm3/m256/m32bcst            | RVM  | EVEX.256.66.0F.W0 76 /r        | FV
VPCMPEQD      | W:k1{k2}, zmm2, zmm3/m512/m32bcst            | RVM  | EVEX.512.66.0F.W0 76 /r        | FV
@ 2B PCMPEQQ; alu; feature=avx512f
VPCMPEQQ      | W:k1{k2}, xmm2, xmm3/m128/m64bcst            | RVM  | EVEX.128.66.0F38.W1 29 /r      | FV
VPCMPEQQ      | W:k1{k2}, ymm2, ymm3/m256/m64bcst            | RVM  | EVEX.256.66.0F38.W1 29 /r      | FV
VPCMPEQQ      | W:k1{k2}, zmm2, zmm3/m512/m64bcst            | RVM  | EVEX.512.66.0F38.W1 29 /r      | FV
@ 2B PCMPGTB/PCMPGTW/PCMPGTD; alu; feature=avx512bw
VPCMPGTB      | W:k1{k2}, xmm2, xmm3/m128                    | RVM  | EVEX.128.66.0F.WIG 64 /r       | FVM
VPCMPGTB      | W:k1{k2}, ymm2, ymm3/m256                    | RVM  | EVEX.256.66.0F.WIG 64 /r       | FVM
VPCMPGTB      | W:k1{k2}, zmm2, zmm3/m512                    | RVM  | EVEX.512.66.0F.WIG 64 /r       | FVM
VPCMPGTW      | W:k1{k2}, xmm2, xmm3/m128                    | RVM  | EVEX.128.66.0F.WIG 65 /r       | FVM
VPCMPGTW      | W:k1{k2}, ymm2, ymm3/m256                    | RVM  | EVEX.256.66.0F.WIG 65 /r       | FVM
VPCMPGTW      | W:k1{k2}, zmm2, zmm3/m512                    | RVM  | EVEX.512.66.0F.WIG 65 /r       | FVM
@ 2B PCMPGTB/PCMPGTW/PCMPGTD; alu; feature=avx512f
VPCMPGTD      | W:k1{k2}, xmm2, xmm3/m128/m32bcst            | RVM  | EVEX.128.66.0F.W0 66 /r        | FV
VPCMPGTD      | W:k1{k2}, ymm2, ymm3/m256/m32bcst            | RVM  | EVEX.256.66.0F.W0 66 /r        | FV
VPCMPGTD      | W:k1{k2}, zmm2, zmm3/m512/m32bcst            | RVM  | EVEX.512.66.0F.W0 66 /r        | FV
@ 2B PCMPGTQ; alu3; feature=avx512f
VPCMPGTQ      | W:k1{k2}, xmm2, xmm3/m128/m64bcst            | RVM  | EVEX.128.66.0F38.W1 37 /r      | FV
VPCMPGTQ      | W:k1{k2}, ymm2, ymm3/m256/m64bcst            | RVM  | EVEX.256.66.0F38.W1 37 /r      | FV
VPCMPGTQ      | W:k1{k2}, zmm2, zmm3/m512/m64bcst            | RVM  | EVEX.512.66.0F38.W1 37 /r      | FV
@ 2C VPTESTMB/VPTESTMW/VPTESTMD/VPTESTMQ; alu3; feature=avx512bw
VPTESTMB      | W:k2{k1}, xmm2, xmm3/m128                    | RVM  | EVEX.128.66.0F38.W0 26 /r      | FVM
VPTESTMB      | W:k2{k1}, ymm2, ymm3/m256                    | RVM  | EVEX.256.66.0F38.W0 26 /r      | FVM
VPTESTMB      | W:k2{k1}, zmm2, zmm3/m512                    | RVM  | EVEX.512.66.0F38.W0 26 /r      | FVM
VPTESTMW      | W:k2{k1}, xmm2, xmm3/m128                    | RVM  | EVEX.128.66.0F38.W1 26 /r      | FVM
VPTESTMW      | W:k2{k1}, ymm2, ymm3/m256                    | RVM  | EVEX.256.66.0F38.W1 26 /r      | FVM
VPTESTMW      | W:k2{k1}, zmm2, zmm3/m512                    | RVM  | EVEX.512.66.0F38.W1 26 /r      | FVM
@ 2C VPTESTMB/VPTESTMW/VPTESTMD/VPTESTMQ; alu3; feature=avx512f
VPTESTMD      | W:k2{k1}, xmm2, xmm3/m128/m32bcst            | RVM  | EVEX.128.66.0F38.W0 27 /r      | FV
VPTESTMD      | W:k2{k1}, ymm2, ymm3/m256/m32bcst            | RVM  | EVEX.256.66.0F38.W0 27 /r      | FV
VPTESTMD      | W:k2{k1}, zmm2, zmm3/m512/m32bcst            | RVM  | EVEX.512.66.0F38.W0 27 /r      | FV
VPTESTMQ      | W:k2{k1}, xmm2, xmm3/m128/m64bcst            | RVM  | EVEX.128.66.0F38.W1 27 /r      | FV
VPTESTMQ      | W:k2{k1}, ymm2, ymm3/m256/m64bcst            | RVM  | EVEX.256.66.0F38.W1 27 /r      | FV
VPTESTMQ      | W:k2{k1}, zmm2, zmm3/m512/m64bcst            | RVM  | EVEX.512.66.0F38.W1 27 /r      | FV
@ 2C VPTESTNMB/W/D/Q; alu3; feature=avx512bw
VPTESTNMB     | W:k2{k1}, xmm2, xmm3/m128                    | RVM  | EVEX.128.F3.0F38.W0 26 /r      | FVM
VPTESTNMB     | W:k2{k1}, ymm2, ymm3/m256                    | RVM  | EVEX.256.F3.0F38.W0 26 /r      | FVM
VPTESTNMB     | W:k2{k1}, zmm2, zmm3/m512                    | RVM  | EVEX.512.F3.0F38.W0 26 /r      | FVM
VPTESTNMW     | W:k2{k1}, xmm2, xmm3/m128                    | RVM  | EVEX.128.F3.0F38.W1 26 /r      | FVM
VPTESTNMW     | W:k2{k1}, ymm2, ymm3/m256                    | RVM  | EVEX.256.F3.0F38.W1 26 /r      | FVM
VPTESTNMW     | W:k2{k1}, zmm2, zmm3/m512                    | RVM  | EVEX.512.F3.0F38.W1 26 /r      | FVM
@ 2C VPTESTNMB/W/D/Q; alu3; feature=avx512f
VPTESTNMD     | W:k2{k1}, xmm2, xmm3/m128/m32bcst            | RVM  | EVEX.128.F3.0F38.W0 27 /r      | FV
VPTESTNMD     | W:k2{k1}, ymm2, ymm3/m256/m32bcst            | RVM  | EVEX.256.F3.0F38.W0 27 /r      | FV
VPTESTNMD     | W:k2{k1}, zmm2, zmm3/m512/m32bcst            | RVM  | EVEX.512.F3.0F38.W0 27 /r      | FV
VPTESTNMQ     | W:k2{k1}, xmm2, xmm3/m128/m64bcst            | RVM  | EVEX.128.F3.0F38.W1 27 /r      | FV
VPTESTNMQ     | W:k2{k1}, ymm2, ymm3/m256/m64bcst            | RVM  | EVEX.256.F3.0F38.W1 27 /r      | FV
VPTESTNMQ     | W:k2{k1}, zmm2, zmm3/m512/m64bcst            | RVM  | EVEX.512.F3.0F38.W1 27 /r      | FV
@ 2C VPBLENDMB/VPBLENDMW; alu; feature=avx512bw
VPBLENDMB     | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W0 66 /r      | FVM
VPBLENDMB     | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W0 66 /r      | FVM
VPBLENDMB     | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W0 66 /r      | FVM
VPBLENDMW     | W:xmm1{k1}{z}, xmm2, xmm3/m128               | RVM  | EVEX.128.66.0F38.W1 66 /r      | FVM
VPBLENDMW     | W:ymm1{k1}{z}, ymm2, ymm3/m256               | RVM  | EVEX.256.66.0F38.W1 66 /r      | FVM
VPBLENDMW     | W:zmm1{k1}{z}, zmm2, zmm3/m512               | RVM  | EVEX.512.66.0F38.W1 66 /r      | FVM
@ 2C VPBLENDMD/VPBLENDMQ; alu; feature=avx512f
VPBLENDMD     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 64 /r      | FV
VPBLENDMD     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 64 /r      | FV
VPBLENDMD     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 64 /r      | FV
VPBLENDMQ     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 64 /r      | FV
VPBLENDMQ     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 64 /r      | FV
VPBLENDMQ     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 64 /r      | FV
@ 2C VBLENDMPD/VBLENDMPS; alu; feature=avx512f
VBLENDMPS     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 65 /r      | FV
VBLENDMPS     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 65 /r      | FV
VBLENDMPS     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.66.0F38.W0 65 /r      | FV
VBLENDMPD     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 65 /r      | FV
VBLENDMPD     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 65 /r      | FV
VBLENDMPD     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F38.W1 65 /r      | FV
@ 2A CMPPS; fp; feature=avx512f
VCMPPS        | W:k1{k2}, xmm2, xmm3/m128/m32bcst, imm8      | RVMI | EVEX.128.0F.W0 C2 /r ib        | FV
VCMPPS        | W:k1{k2}, ymm2, ymm3/m256/m32bcst, imm8      | RVMI | EVEX.256.0F.W0 C2 /r ib        | FV
VCMPPS        | W:k1{k2}, zmm2, zmm3/m512/m32bcst{sae}, imm8 | RVMI | EVEX.512.0F.W0 C2 /r ib        | FV
@ 2A CMPPD; fp; feature=avx512f
VCMPPD        | W:k1{k2}, xmm2, xmm3/m128/m64bcst, imm8      | RVMI | EVEX.128.66.0F.W1 C2 /r ib     | FV
VCMPPD        | W:k1{k2}, ymm2, ymm3/m256/m64bcst, imm8      | RVMI | EVEX.256.66.0F.W1 C2 /r ib     | FV
VCMPPD        | W:k1{k2}, zmm2, zmm3/m512/m64bcst{sae}, imm8 | RVMI | EVEX.512.66.0F.W1 C2 /r ib     | FV
@ 2A CMPSS; fp; feature=avx512f
VCMPSS        | W:k1{k2}, xmm2, xmm3/m32{sae}, imm8          | RVMI | EVEX.LIG.F3.0F.W0 C2 /r ib     | T1S
@ 2A CMPSD; fp; feature=avx512f
VCMPSD        | W:k1{k2}, xmm2, xmm3/m64{sae}, imm8          | RVMI | EVEX.LIG.F2.0F.W1 C2 /r ib     | T1S
@ 2C VFPCLASSPS; fp; feature=avx512dq
VFPCLASSPS    | W:k2{k1}, xmm2/m128/m32bcst, imm8            | RMI  | EVEX.128.66.0F3A.W0 66 /r ib   | FV
VFPCLASSPS    | W:k2{k1}, ymm2/m256/m32bcst, imm8            | RMI  | EVEX.256.66.0F3A.W0 66 /r ib   | FV
VFPCLASSPS    | W:k2{k1}, zmm2/m512/m32bcst, imm8            | RMI  | EVEX.512.66.0F3A.W0 66 /r ib   | FV
@ 2C VFPCLASSPD; fp; feature=avx512dq
VFPCLASSPD    | W:k2{k1}, xmm2/m128/m64bcst, imm8            | RMI  | EVEX.128.66.0F3A.W1 66 /r ib   | FV
VFPCLASSPD    | W:k2{k1}, ymm2/m256/m64bcst, imm8            | RMI  | EVEX.256.66.0F3A.W1 66 /r ib   | FV
VFPCLASSPD    | W:k2{k1}, zmm2/m512/m64bcst, imm8            | RMI  | EVEX.512.66.0F3A.W1 66 /r ib   | FV
@ 2C VFPCLASSSS; fp; feature=avx512dq
VFPCLASSSS    | W:k2{k1}, xmm2/m32, imm8                     | RMI  | EVEX.LIG.66.0F3A.W0 67 /r ib   | T1S
@ 2C VFPCLASSSD; fp; feature=avx512dq
VFPCLASSSD    | W:k2{k1}, xmm2/m64, imm8                     | RMI  | EVEX.LIG.66.0F3A.W1 67 /r ib   | T1S
"""
