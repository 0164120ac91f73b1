"""Named families of architectures with fields that can be searched, written as Keras JSON."""
