#!/bin/sh
# Run once as root inside the image's root file system: the user that Ray runs as, as in ../ray/setup.sh.
set -eu
useradd --create-home --home-dir /home/ray --uid 1000 --gid users --shell /bin/bash ray
