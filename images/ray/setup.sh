#!/bin/sh
# Run once as root inside the image's root file system: the user that Ray runs as, with the ids, name and home
# that it has in the image Ray's users know, so that their security contexts and volumes fit.
set -eu
useradd --create-home --home-dir /home/ray --uid 1000 --gid users --shell /bin/bash ray
