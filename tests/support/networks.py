"""Small networks with attention and normalisation, of Keras and of keras_hub, as JSON: one for each
listed class.
"""

from __future__ import annotations

from collections.abc import Sequence

from models import Json, dense, layer, model, tensor

TOKENS, LENGTH = 20, 6
"""Texts of six tokens, of which 0 stands for none."""
PICTURE = [8, 8, 3]
SERIES = [6, 4]
HEADED = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}
WORDS = {"vocabulary_size": TOKENS, "max_sequence_length": LENGTH, "intermediate_dim": 12}
PATCHES = {"image_shape": PICTURE, "patch_size": 4}
ENCODER = {"intermediate_dim": 12, "num_heads": 2}


def of_hub(class_name: str, name: str, **config: object) -> Json:
    """A layer or backbone of keras_hub, as it writes itself."""
    place = "models" if class_name.endswith("Backbone") else "layers"
    return {
        "module": f"keras_hub.src.{place}.{name}",
        "class_name": class_name,
        "config": {"name": name, **config},
        "registered_name": f"keras_hub>{class_name}",
    }


def called(inner: Json, *arguments: object, **named: object) -> Json:
    """A layer of a functional model, called with these."""
    calls = [{"args": list(arguments), "kwargs": named}] if arguments else []
    return {**inner, "name": inner["config"]["name"], "inbound_nodes": calls}


def functional(inputs: Sequence[str], *layers: Json) -> Json:
    """A functional model with these inputs, whose last layer gives its output."""
    config = {
        "name": "network",
        "trainable": True,
        "layers": list(layers),
        "input_layers": [[name, 0, 0] for name in inputs],
        "output_layers": [[layers[-1]["name"], 0, 0]],
    }
    module = "keras.src.models.functional"
    return {
        "module": module,
        "class_name": "Functional",
        "registered_name": "Functional",
        "config": config,
    }


def operation(class_name: str, name: str, *arguments: object) -> Json:
    """An operation between layers."""
    made = {
        **layer(class_name, name),
        "module": "keras.src.ops.numpy",
        "registered_name": class_name,
    }
    return called(made, *arguments)


def source(name: str, shape: Sequence[int]) -> Json:
    """An input."""
    return called(layer("InputLayer", name, batch_shape=[None, *shape], dtype="float32"))


def texts(backbone: Json, given: Sequence[str], pooled: bool) -> Json:
    """A head on a backbone for texts, which is given tokens alone: what else it wants is made of
    them.

    `pooled`: it gives one vector for a text, before all else; otherwise one for each token.
    """
    made = {"token_ids": "tokens", "padding_mask": "words", "segment_ids": "segments"}
    name = backbone["config"]["name"]
    mean = [] if pooled else [called(layer("GlobalAveragePooling1D", "mean"), tensor(name))]
    return functional(
        ["tokens"],
        source("tokens", [LENGTH]),
        operation("NotEqual", "words", tensor("tokens"), 0),
        operation("ZerosLike", "segments", tensor("tokens")),
        called(backbone, {key: tensor(made[key]) for key in given}),
        *mean,
        called(dense(3, "out", "softmax"), tensor(name if pooled else "mean")),
    )


def several_inputs(backbone: Json) -> Json:
    """A head on a backbone for texts that is given all by columns."""
    names = ("token_ids", "segment_ids", "padding_mask")
    return functional(
        names,
        *(source(name, [LENGTH]) for name in names),
        called(backbone, {name: tensor(name) for name in names}),
        called(dense(3, "out", "softmax"), tensor(backbone["config"]["name"])),
    )


def bert(**config: object) -> Json:
    """A small BERT."""
    return of_hub("BertBackbone", "bert", **{**HEADED, **WORDS, **config})


def pictures(class_name: str, **config: object) -> Json:
    """A head on a backbone for pictures."""
    backbone = of_hub(class_name, "vision", **{**HEADED, **PATCHES, **config})
    return model(
        PICTURE, backbone, layer("GlobalAveragePooling1D", "mean"), dense(3, "out", "softmax")
    )


def vit(**config: object) -> Json:
    """A head on a small ViT."""
    return pictures("ViTBackbone", mlp_dim=12, **config)


def tokens(*layers: Json) -> Json:
    """Layers between tokens and a head."""
    first = of_hub("TokenAndPositionEmbedding", "words", **{
        "vocabulary_size": TOKENS, "sequence_length": LENGTH, "embedding_dim": 8,
        "mask_zero": True})  # fmt: skip
    return model(
        [LENGTH],
        first,
        *layers,
        layer("GlobalAveragePooling1D", "mean"),
        dense(3, "out", "softmax"),
    )


def series(*layers: Json) -> Json:
    """Layers between series of numbers and a head."""
    return model(
        SERIES, *layers, layer("GlobalAveragePooling1D", "mean"), dense(3, "out", "softmax")
    )


def attending(class_name: str, *arguments: object, **config: object) -> Json:
    """A head on a layer that attends from a series to itself."""
    itself = tensor("series")
    given = arguments or ([itself, itself],)
    return functional(
        ["series"],
        source("series", SERIES),
        called(layer(class_name, "attention", **config), *given),
        called(layer("GlobalAveragePooling1D", "mean"), tensor("attention")),
        called(dense(3, "out", "softmax"), tensor("mean")),
    )


def placed(places: Json) -> Json:
    """A head on a series to which is added what a layer says of places."""
    return functional(
        ["series"],
        source("series", SERIES),
        called(dense(4, "hidden"), tensor("series")),
        called(places, tensor("hidden")),
        called(layer("Add", "both"), [tensor("hidden"), tensor("places")]),
        called(layer("GlobalAveragePooling1D", "mean"), tensor("both")),
        called(dense(3, "out", "softmax"), tensor("mean")),
    )


ALL = ("token_ids", "segment_ids", "padding_mask")
PAIR = ("token_ids", "padding_mask")
OF_KERAS: dict[str, Json] = {
    "AdditiveAttention": attending("AdditiveAttention"),
    "Attention": attending("Attention", use_scale=True),
    "BatchNormalization": series(layer("BatchNormalization", "normal")),
    "GroupNormalization": series(layer("GroupNormalization", "normal", groups=2)),
    "GroupQueryAttention": attending(
        "GroupQueryAttention",
        tensor("series"),
        tensor("series"),
        head_dim=4,
        num_query_heads=2,
        num_key_value_heads=1,
    ),
    "LayerNormalization": series(layer("LayerNormalization", "normal")),
    "MultiHeadAttention": attending(
        "MultiHeadAttention", tensor("series"), tensor("series"), num_heads=2, key_dim=4
    ),
    "Normalization": series(layer("Normalization", "normal"), dense(5, "hidden")),
    "RMSNormalization": series(layer("RMSNormalization", "normal")),
    "SpectralNormalization": series(
        layer("SpectralNormalization", "normal", layer=dense(5, "inner"))
    ),
    "UnitNormalization": series(dense(5, "hidden"), layer("UnitNormalization", "normal")),
}
OF_HUB: dict[str, Json] = {
    "FNetEncoder": tokens(of_hub("FNetEncoder", "encoder", intermediate_dim=12, dropout=0.1)),
    "PositionEmbedding": placed(of_hub("PositionEmbedding", "places", sequence_length=6,
    initializer="he_normal")),
    "RotaryEmbedding": series(dense(4, "hidden"), of_hub("RotaryEmbedding", "turned")),
    "SinePositionEncoding": placed(of_hub("SinePositionEncoding", "places")),
    "TokenAndPositionEmbedding": tokens(),
    "TransformerDecoder": tokens(of_hub("TransformerDecoder", "decoder", **ENCODER, dropout=0.1)),
    "TransformerEncoder": tokens(of_hub("TransformerEncoder", "encoder", **ENCODER, dropout=0.1)),
    "AlbertBackbone": texts(
        of_hub("AlbertBackbone", "albert", **HEADED, **WORDS, embedding_dim=4, num_segments=2), ALL,
        pooled=True
    ),
    "BertBackbone": texts(bert(), ALL, pooled=True),
    "DeiTBackbone": pictures("DeiTBackbone", intermediate_dim=12),
    "DistilBertBackbone": texts(of_hub("DistilBertBackbone", "distilled", **HEADED, **WORDS), PAIR,
    pooled=False),
    "ElectraBackbone": texts(
        of_hub("ElectraBackbone", "electra", **HEADED, vocab_size=TOKENS,
        max_sequence_length=LENGTH,
               intermediate_dim=12, embedding_dim=4), ALL, pooled=True
    ),
    "FNetBackbone": texts(
        of_hub("FNetBackbone", "fnet", num_layers=1, hidden_dim=8, **WORDS), ALL[:2], pooled=True
    ),
    "GPT2Backbone": texts(of_hub("GPT2Backbone", "gpt", **HEADED, **WORDS), PAIR, pooled=False),
    "RobertaBackbone": texts(of_hub("RobertaBackbone", "roberta", **HEADED, **WORDS), PAIR,
    pooled=False),
    "ViTBackbone": vit(),
}  # fmt: skip
