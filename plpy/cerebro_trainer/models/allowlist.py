"""Names of the classes that an architecture may contain, shared by trainer, backend and client.

The trainer enforces the list: it rewrites each architecture with these names before it builds a
model. So does the client when it exports models. The backend checks the same names when an
architecture is loaded, so that its user sees the error at once. Backend and client have this module
by symbolic links.

New layers of Keras are refused until someone has checked them. The list excludes layers that run
code (Lambda, TFSMLayer, JaxLayer, FlaxLayer, TorchModuleWrapper), layers that read files
(StringLookup, IntegerLookup, TextVectorization), and layers that take text as input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def parse_names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


MAX_CHARACTERS = 10_000_000
"""Limit for the JSON of an architecture; known networks have a few MB."""
MAX_LAYERS = 10_000
"""Limit for a network with its nested models; known networks have fewer than 5,000."""
MODELS = ("Sequential", "Functional", "Model")
LAYERS = parse_names("""
    Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D
    AdaptiveAveragePooling3D AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add
    AdditiveAttention AlphaDropout Attention Average AveragePooling1D AveragePooling2D
    AveragePooling3D BatchNormalization Bidirectional CategoryEncoding CenterCrop Concatenate Conv1D
    Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM2D ConvLSTM3D
    Cropping1D Cropping2D Cropping3D Dense DepthwiseConv1D DepthwiseConv2D Discretization Dot
    Dropout ELU EinsumDense Embedding Flatten GRU GRUCell GaussianDropout GaussianNoise
    GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D
    GlobalMaxPooling2D GlobalMaxPooling3D GroupNormalization GroupQueryAttention Identity InputLayer
    LSTM LSTMCell LayerNormalization LeakyReLU Masking MaxPooling1D MaxPooling2D MaxPooling3D
    Maximum Minimum MultiHeadAttention Multiply Normalization PReLU Permute RMSNormalization RNN
    RandomBrightness RandomContrast RandomCrop RandomFlip RandomRotation RandomTranslation
    RandomZoom ReLU RepeatVector Rescaling Reshape Resizing SeparableConv1D SeparableConv2D
    SimpleRNN SimpleRNNCell Softmax SpatialDropout1D SpatialDropout2D SpatialDropout3D
    SpectralNormalization StackedRNNCells Subtract TimeDistributed UnitNormalization UpSampling1D
    UpSampling2D UpSampling3D ZeroPadding1D ZeroPadding2D ZeroPadding3D
""")
INITIALIZERS = parse_names("""
    Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity LecunNormal LecunUniform Ones
    Orthogonal RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros
""")
REGULARIZERS = parse_names("L1 L1L2 L2 OrthogonalRegularizer")
CONSTRAINTS = parse_names("MaxNorm MinMaxNorm NonNeg UnitNorm")
ACTIVATIONS = parse_names("""
    celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu
    linear log_sigmoid log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus
    softsign sparse_plus sparse_sigmoid sparsemax squareplus swish tanh tanh_shrink threshold
""")
OPERATIONS = {
    "keras.src.ops.core": parse_names("StopGradient"),
    "keras.src.ops.numpy": parse_names("""
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
        Meshgrid Min Minimum Mod Moveaxis Multiply NanToNum Nanargmax Nanargmin Nancumprod Nancumsum
        Nanmax Nanmean Nanmedian Nanmin Nanpercentile Nanprod Nanquantile Nanstd Nansum Nanvar
        Negative Nextafter NotEqual OnesLike Outer Pad Percentile Power Prod Ptp Quantile Rad2deg
        Ravel Real Reciprocal Repeat Reshape RightShift Roll Rot90 Round SearchSorted Select Sign
        Signbit Sin Sinc Sinh Slogdet Sort Split Sqrt Square Squeeze Stack Std Subtract Sum Swapaxes
        Take TakeAlongAxis Tan Tanh Tensordot Tile Trace Transpose Trapezoid Tril Triu TrueDivide
        Trunc UnravelIndex Vander Var Vdot Vsplit Vstack Where ZerosLike
    """),
    "keras.src.ops.nn": parse_names("""
        AdaptiveAveragePool AdaptiveMaxPool AveragePool BatchNorm BinaryCrossentropy CTCLoss
        CategoricalCrossentropy Celu Conv ConvTranspose DepthToSpace DepthwiseConv
        DotProductAttention Elu Fold Gelu Glu HardShrink HardSigmoid HardSilu HardTanh LayerNorm
        LeakyRelu LogSigmoid LogSoftmax MaxPool Moments MultiHot Normalize OneHot PSNR Polar RMSNorm
        Relu Relu6 Selu SeparableConv Sigmoid Silu SoftShrink Softmax Softplus Softsign SpaceToDepth
        SparseCategoricalCrossentropy SparsePlus SparseSigmoid Sparsemax Squareplus TanhShrink
        Threshold Unfold
    """),
    "keras.src.ops.math": parse_names("""
        CDist Erf Erfc Erfinv ExtractSequences FFT FFT2 IFFT2 IRFFT ISTFT InTopK Logdet Logsumexp
        RFFT Rsqrt STFT SegmentMax SegmentMin SegmentProd SegmentSum TopK ViewAsComplex ViewAsReal
    """),
}
"""Operations between layers, such as the sum that `x + y` records, by their module in Keras 3.

Their arguments are numbers and names. The list excludes operations without a tensor as input
(Arange, Full), with a result whose shape depends on values (Nonzero, Unique), or with a result that
is not a tensor (Ndim, Size).
"""

HUB = {
    "keras_hub.layers": parse_names("""
        FNetEncoder PositionEmbedding RotaryEmbedding SinePositionEncoding TokenAndPositionEmbedding
        TransformerDecoder TransformerEncoder
    """),
    "keras_hub.models": parse_names("""
        AlbertBackbone BertBackbone DeiTBackbone DistilBertBackbone ElectraBackbone FNetBackbone
        GPT2Backbone RobertaBackbone ViTBackbone
    """),
}
"""Classes of keras_hub by their public module; they take numbers, names and initializers only.

The list excludes classes that take other objects, tokenizers and preprocessors, which read files,
and tasks, which contain one of these. Presets are downloaded files.
"""
_HUB_MODULE = re.compile(r"keras_hub(\.\w+)*")


def is_of_hub(node: Mapping[str, Any]) -> bool:
    """Return whether a JSON object names a class of keras_hub."""
    return isinstance(node.get("module"), str) and bool(_HUB_MODULE.fullmatch(node["module"]))


def hub_module(node: Mapping[str, Any]) -> str | None:
    """Return the public module of a listed class of keras_hub; None for other objects."""
    name = node.get("class_name")
    if not is_of_hub(node) or not isinstance(name, str):
        return None
    if node.get("registered_name") not in (None, name, f"keras_hub>{name}"):
        return None
    return next((module for module, names in HUB.items() if name in names), None)


def hub_hint() -> str:
    """Return a hint with the listed classes of keras_hub."""
    classes = ", ".join(sorted(name for names in HUB.values() for name in names))
    return (
        f"Of keras_hub there are {classes}, by their numbers. Presets are downloaded, tokenizers "
        "and preprocessors read files, tasks hold either: begin with weights by model_weights."
    )


OLD_LAYERS = {
    "Convolution1D": "Conv1D",
    "Convolution2D": "Conv2D",
    "Convolution3D": "Conv3D",
    "BatchNormalizationV1": "BatchNormalization",
    "SyncBatchNormalization": "BatchNormalization",
}
"""Keras 3's names of layers by their names in Keras 2."""
OLD_ACTIVATIONS = {"softmax_v2": "softmax", "relu_v2": "relu"}
"""The same for activations in some versions of tf.keras."""
