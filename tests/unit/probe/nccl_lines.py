"""Lines that NCCL and RCCL printed under NCCL_DEBUG=INFO, as people published them; host names replaced."""

# RCCL on two RX 7900 XTX, one process a GPU (a report of 2026 about vLLM).
RCCL_PEER_ACCESS = (
    "hosta:829507:829550 [0] NCCL INFO Channel 00/0 : 0[3000] -> 1[d000] via P2P/IPC comm 0x2bc1f840 nRanks 02",
    "hosta:829507:829550 [0] NCCL INFO Channel 01/0 : 0[3000] -> 1[d000] via P2P/IPC comm 0x2bc1f840 nRanks 02",
    "hosta:829507:829550 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1",
)
# NCCL on four A100, two pairs with NVLink.
SHARED_MEMORY = (
    "hostb:1893:1893 [3] NCCL INFO Channel 02 : 3[3] -> 0[0] via SHM/direct/direct",
    "hostb:1890:1890 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
)
# NCCL 2.7.8 on two machines with four GPUs each.
OLD_SOCKETS = (
    "NCCL version 2.7.8+cuda10.1",
    "hostc:1475:1475 [0] NCCL INFO Bootstrap : Using [0]eno2:192.0.2.105<0>",
    "hostc:1481:2165 [3] NCCL INFO Channel 00 : 3[b1000] -> 4[18000] [send] via NET/Socket/0",
    "hostc:1475:2146 [0] NCCL INFO Channel 00 : 7[b1000] -> 0[18000] [receive] via NET/Socket/0",
    "hostc:1477:2150 [1] NCCL INFO Channel 00 : 1[1a000] -> 2[af000] via direct shared memory",
    "hostc:1480:2169 [2] NCCL INFO Channel 00 : 2[af000] -> 3[b1000] via P2P/IPC",
)
# RCCL across machines.
PLUGIN = (
    "[1] NCCL INFO Channel 01/0 : 6[202000] -> 1[102000] [receive] via NET/AWS Libfabric/1 comm 0x7f2ab8622e40 nRanks 08",
)
# RCCL 2.30.4 on four Vega 20.
RCCL_INIT = (
    '[2026-09-06 18:37:47] hosta:253809:253809 [0] /src/init.cc:303 NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!',
    "hosta:253809:253809 [0] NCCL INFO RCCL version : 2.30.4-HEAD:2b22ab0",
    "HIP version  : 7.14.60850-0000000",
    "hosta:253809:253904 [0] NCCL INFO NET/Socket : Using [0]enp3s0:192.0.2.2<0>",
    "hosta:253809:253905 [1] NCCL INFO  0 : GPU/0-b000 GPU/0-e000 GPU/0-1b000 GPU/0-1e000",
)
# What a full /dev/shm makes them say: NVIDIA/nccl#290, #525, and a guide with 2.18.
SHARED_MEMORY_IS_FULL = (
    "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
    "NCCL WARN Error while creating shared memory segment nccl-shm-recv-1462445a6f01cbfc-1-2-3 (size 9637888)",
    "3d3e22c3066f:168:168 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-UbzKZ9 to 9637892 bytes",
)
