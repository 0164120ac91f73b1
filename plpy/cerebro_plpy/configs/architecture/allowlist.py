"""What an architecture may be made of, by name: one file, which the backend and the client have,
too, by links.

The trainer rewrites what it builds by these names, and that is what holds; so does the client,
where it exports models. The backend (`cerebro_plpy/configs/architecture/allowlist.py`) refuses what
is not among them when an architecture is loaded, so that its user hears of it at once.

A positive list: a layer that a later Keras adds is refused until someone has looked at it. Left out
are layers that run code (Lambda, TFSMLayer, JaxLayer, FlaxLayer, TorchModuleWrapper), those that
read files (StringLookup, IntegerLookup, TextVectorization), and those that want text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


MAX_CHARACTERS = 10_000_000
"""Of the JSON of an architecture; that of networks in use has a few MB."""
MAX_LAYERS = 10_000
"""Of a network, with those of models within it; networks in use have fewer than 5,000."""
MODELS = ("Sequential", "Functional", "Model")
LAYERS = names("""
    Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D
    AdaptiveAveragePooling3D AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add
    AdditiveAttention AlphaDropout Attention Average AveragePooling1D AveragePooling2D
        AveragePooling3D
    BatchNormalization Bidirectional CategoryEncoding CenterCrop Concatenate Conv1D Conv1DTranspose
    Conv2D Conv2DTranspose Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM2D ConvLSTM3D Cropping1D
        Cropping2D
    Cropping3D Dense DepthwiseConv1D DepthwiseConv2D Discretization Dot Dropout ELU EinsumDense
    Embedding Flatten GRU GRUCell GaussianDropout GaussianNoise GlobalAveragePooling1D
    GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D
    GlobalMaxPooling3D GroupNormalization GroupQueryAttention Identity InputLayer LSTM LSTMCell
    LayerNormalization LeakyReLU Masking MaxPooling1D MaxPooling2D MaxPooling3D Maximum Minimum
    MultiHeadAttention Multiply Normalization PReLU Permute RMSNormalization RNN RandomBrightness
    RandomContrast RandomCrop RandomFlip RandomRotation RandomTranslation RandomZoom ReLU
        RepeatVector
    Rescaling Reshape Resizing SeparableConv1D SeparableConv2D SimpleRNN SimpleRNNCell Softmax
    SpatialDropout1D SpatialDropout2D SpatialDropout3D SpectralNormalization StackedRNNCells
        Subtract
    TimeDistributed UnitNormalization UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D
        ZeroPadding2D
    ZeroPadding3D""")
INITIALIZERS = names("""
    Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity LecunNormal LecunUniform Ones
    Orthogonal RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros""")
REGULARIZERS = names("L1 L1L2 L2 OrthogonalRegularizer")
CONSTRAINTS = names("MaxNorm MinMaxNorm NonNeg UnitNorm")
ACTIVATIONS = names("""
    celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu
    linear log_sigmoid log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus
    softsign sparse_plus sparse_sigmoid sparsemax squareplus swish tanh tanh_shrink threshold""")
OPERATIONS = {
    "keras.src.ops.core": names("StopGradient"),
    "keras.src.ops.numpy": names("""
        Abs Absolute Add All AllClose Amax Amin Angle Any Append Arccos Arccosh Arcsin Arcsinh
        Arctan Arctan2 Arctanh Argmax Argmin Argpartition Argsort ArraySplit Average Bincount
        BitwiseAnd BitwiseInvert BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor
        BroadcastTo Cbrt Ceil Clip Concatenate Conj Conjugate Copy Corrcoef Correlate Cos Cosh
        CountNonzero Cross Cumprod Cumsum Deg2rad Diag Diagflat Diagonal Diff Digitize Divide
        DivideNoNan Dot Dsplit Dstack Einsum EmptyLike Equal Exp Exp2 ExpandDims Expm1 Fabs Flip
        Fliplr Flipud Floor FloorDivide Fmax Fmin Fmod FullLike Gcd GetItem Greater GreaterEqual
        Heaviside Hsplit Hstack Hypot I0 Imag Inner IsIn Isclose Isfinite Isinf Isnan Isneginf
        Isposinf Isreal Kron Lcm Ldexp LeftShift Less LessEqual Log Log10 Log1p Log2 Logaddexp
        Logaddexp2 LogicalAnd LogicalNot LogicalOr LogicalXor Matmul Max Maximum Mean Median
            Meshgrid Min
        Minimum Mod Moveaxis Multiply NanToNum Nanargmax Nanargmin Nancumprod Nancumsum Nanmax
        Nanmean Nanmedian Nanmin Nanpercentile Nanprod Nanquantile Nanstd Nansum Nanvar Negative
        Nextafter NotEqual OnesLike Outer Pad Percentile Power Prod Ptp Quantile Rad2deg Ravel Real
        Reciprocal Repeat Reshape RightShift Roll Rot90 Round SearchSorted Select Sign Signbit Sin
            Sinc
        Sinh Slogdet Sort Split Sqrt Square Squeeze Stack Std Subtract Sum Swapaxes Take
        TakeAlongAxis Tan Tanh Tensordot Tile Trace Transpose Trapezoid Tril Triu TrueDivide Trunc
        UnravelIndex Vander Var Vdot Vsplit Vstack Where ZerosLike"""),
    "keras.src.ops.nn": names("""
        AdaptiveAveragePool AdaptiveMaxPool AveragePool BatchNorm BinaryCrossentropy CTCLoss
        CategoricalCrossentropy Celu Conv ConvTranspose DepthToSpace DepthwiseConv
        DotProductAttention Elu Fold Gelu Glu HardShrink HardSigmoid HardSilu HardTanh LayerNorm
        LeakyRelu LogSigmoid LogSoftmax MaxPool Moments MultiHot Normalize OneHot PSNR Polar RMSNorm
        Relu Relu6 Selu SeparableConv Sigmoid Silu SoftShrink Softmax Softplus Softsign SpaceToDepth
        SparseCategoricalCrossentropy SparsePlus SparseSigmoid Sparsemax Squareplus TanhShrink
        Threshold Unfold"""),
    "keras.src.ops.math": names("""
        CDist Erf Erfc Erfinv ExtractSequences FFT FFT2 IFFT2 IRFFT ISTFT InTopK Logdet Logsumexp
        RFFT Rsqrt STFT SegmentMax SegmentMin SegmentProd SegmentSum TopK ViewAsComplex
            ViewAsReal"""),
}
"""Operations between layers, such as the sum that `x + y` records, by where Keras 3 says that they
live.

Their arguments are numbers and names. Left out are those that make a tensor of numbers alone
(Arange, Full), those whose result is as long as the values say (Nonzero, Unique), and those that
give no tensor (Ndim, Size).
"""

HUB = {
    "keras_hub.layers": names("""
        FNetEncoder PositionEmbedding RotaryEmbedding SinePositionEncoding TokenAndPositionEmbedding
        TransformerDecoder TransformerEncoder"""),
    "keras_hub.models": names("""
        AlbertBackbone BertBackbone DeiTBackbone DistilBertBackbone ElectraBackbone FNetBackbone
            GPT2Backbone
        RobertaBackbone ViTBackbone"""),
}
"""Classes of keras_hub, by where they are public: made of numbers, names and initializers, and of
nothing else.

Left out are all that take other objects, tokenizers and what prepares rows, which read files, and
tasks, which hold one of these; presets are files that are downloaded.
"""
_HUB = re.compile(r"keras_hub(\.\w+)*")


def is_of_hub(node: Mapping[str, Any]) -> bool:
    """Whether an object says that it is one of keras_hub."""
    return isinstance(node.get("module"), str) and bool(_HUB.fullmatch(node["module"]))


def hub_module(node: Mapping[str, Any]) -> str | None:
    """Where the listed class of keras_hub is public that an object names, however that is written;
    else None.
    """
    name = node.get("class_name")
    if not is_of_hub(node) or node.get("registered_name") not in (None, name, f"keras_hub>{name}"):
        return None
    return next(
        (module for module, known in HUB.items() if isinstance(name, str) and name in known), None
    )


def hub_hint() -> str:
    """What of keras_hub there is instead of what was refused."""
    known = ", ".join(sorted(name for listed in HUB.values() for name in listed))
    return (
        f"Of keras_hub there are {known}, by their numbers. Presets are downloaded, tokenizers and "
        "preprocessors read files, tasks hold either: begin with weights by model_weights."
    )


OLD_LAYERS = {
    "Convolution1D": "Conv1D",
    "Convolution2D": "Conv2D",
    "Convolution3D": "Conv3D",
    "BatchNormalizationV1": "BatchNormalization",
    "SyncBatchNormalization": "BatchNormalization",
}
OLD_ACTIVATIONS = {"softmax_v2": "softmax", "relu_v2": "relu"}
"""What Keras 2 called otherwise than Keras 3; for activations only some versions of tf.keras."""
