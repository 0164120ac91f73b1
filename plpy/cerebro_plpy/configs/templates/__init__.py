"""Named families of architectures with fields that can be searched; pure functions to Keras
JSON.
"""
