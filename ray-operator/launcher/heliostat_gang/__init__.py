"""Runs the processes of a gang in places of a Ray placement group."""
