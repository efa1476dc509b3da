"""Tells in which language a text is. The model is a small one on CPU; its weights come with the package py3langid."""

from fastapi import FastAPI
from ray import serve

api = FastAPI()


@serve.deployment(ray_actor_options={"num_cpus": 0.5})
@serve.ingress(api)
class Language:
    def __init__(self):
        # Here and not above: only replicas have the package and load the weights.
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self.model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    @api.get("/")
    def language(self, text: str) -> dict:
        language, sure = self.model.classify(text)
        return {"language": language, "sure": round(float(sure), 3)}


app = Language.bind()
