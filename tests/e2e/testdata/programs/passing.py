# An actor that ends with its program.
import time
@ray.remote(num_cpus=0.1)
class Passing:
    def there(self):
        return True
actor = Passing.options(name="passing", namespace="steady").remote()
ray.get(actor.there.remote())
os.mknod("/tmp/holds")
while True:
    time.sleep(1)
