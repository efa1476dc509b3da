# Prints what the proxy beside it says of itself.
import urllib.error, urllib.request
try:
    print(urllib.request.urlopen("http://127.0.0.1:8000/-/healthz", timeout=5).read().decode())
except urllib.error.HTTPError as refusal:
    print(refusal.read().decode())
except OSError as failure:
    print(failure)
