#!/bin/sh
# Run once as root inside the image's root file system: gives Debian's redis user the ids that it has in the image
# Redis's users know, and the data directory that image works in.
set -eu
groupmod --gid 999 redis
usermod --uid 999 --gid 999 redis
chown -R redis:redis /etc/redis /var/lib/redis /var/log/redis
install -d -o redis -g redis /data
