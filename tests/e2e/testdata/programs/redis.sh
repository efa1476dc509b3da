# A Redis that is started again as long as there is no file off. What it has in memory is written when it is told
# to end, and read when it starts.
printf '%s\n' "$USERS" >/data/users.acl
printf '%s\n' "$CERTIFICATE" >/data/tls.crt
printf '%s\n' "$KEY" >/data/tls.key
while :; do
  [ -e /data/off ] || redis-server --dir /data --aclfile /data/users.acl --save '' --appendonly no --maxmemory-policy noeviction $LISTEN
  sleep 0.05
done
