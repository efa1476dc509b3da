"""Judges a review with two models, each with replicas and resources of its own. The ingress asks both at the same time."""

import asyncio
import re

from fastapi import FastAPI
from ray import serve
from ray.serve.handle import DeploymentHandle


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


@serve.deployment(ray_actor_options={"num_cpus": 0.1})
class Mood:
    """A linear model: a weight for each word, of which positive ones are of the good."""

    WEIGHTS = {"good": 1.0, "great": 2.0, "love": 2.0, "fast": 0.5, "bad": -1.0, "awful": -2.0, "broken": -1.5, "late": -1.0, "not": -0.5}

    def mood(self, text: str) -> float:
        return sum(self.WEIGHTS.get(word, 0.0) for word in words(text))


@serve.deployment(ray_actor_options={"num_cpus": 0.1})
class Topic:
    """The topic that most of the words speak of."""

    WORDS = {"delivery": {"late", "fast", "parcel", "courier"}, "product": {"broken", "quality", "screen", "battery"}}

    def topic(self, text: str) -> str:
        found = set(words(text))
        best = max(self.WORDS, key=lambda topic: len(self.WORDS[topic] & found))
        return best if self.WORDS[best] & found else "other"


api = FastAPI()


@serve.deployment(ray_actor_options={"num_cpus": 0.1})
@serve.ingress(api)
class Review:
    def __init__(self, mood: DeploymentHandle, topic: DeploymentHandle):
        self.mood, self.topic = mood, topic

    @api.get("/")
    async def judge(self, text: str) -> dict:
        mood, topic = await asyncio.gather(self.mood.mood.remote(text), self.topic.topic.remote(text))
        return {"mood": mood, "topic": topic}


app = Review.bind(Mood.bind(), Topic.bind())
