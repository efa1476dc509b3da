#!/bin/sh
# Run once as root inside the image's root file system: the user that Ray runs as, as in ../ray/setup.sh. Debian builds PyTorch
# without libuv, and PyTorch asks for it by default.
set -eu
useradd --create-home --home-dir /home/ray --uid 1000 --gid users --shell /bin/bash ray
cd /usr/lib/python3/dist-packages/torch/distributed
sed -i 's/"USE_LIBUV", "1"/"USE_LIBUV", "0"/; s/is_master=False,/& use_libuv=False,/' rendezvous.py elastic/utils/distributed.py
sed -i 's/multi_tenant=True,/& use_libuv=False,/' elastic/rendezvous/static_tcp_rendezvous.py elastic/rendezvous/c10d_rendezvous_backend.py
