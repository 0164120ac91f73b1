"""What an architecture may consist of, as data: classes that run no code of their own and read no files.

The backend refuses all others when a model is loaded; the trainer, which builds models, has its own list and
is the one that must hold. A unit test compares both with the installed Keras.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODELS = _words("Sequential Functional Model")

LAYERS = _words("""
    Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D
    AdaptiveAveragePooling3D AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add
    AdditiveAttention AlphaDropout Attention Average AveragePooling1D AveragePooling2D AveragePooling3D
    BatchNormalization Bidirectional CategoryEncoding CenterCrop Concatenate Conv1D Conv1DTranspose Conv2D
    Conv2DTranspose Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM2D ConvLSTM3D Cropping1D Cropping2D Cropping3D
    Dense DepthwiseConv1D DepthwiseConv2D Discretization Dot Dropout ELU EinsumDense Embedding Flatten GRU
    GRUCell GaussianDropout GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D
    GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D GroupNormalization
    GroupQueryAttention Identity InputLayer LSTM LSTMCell LayerNormalization LeakyReLU Masking MaxPooling1D
    MaxPooling2D MaxPooling3D Maximum Minimum MultiHeadAttention Multiply Normalization PReLU Permute
    RMSNormalization RNN RandomBrightness RandomContrast RandomCrop RandomFlip RandomRotation
    RandomTranslation RandomZoom ReLU RepeatVector Rescaling Reshape Resizing SeparableConv1D SeparableConv2D
    SimpleRNN SimpleRNNCell Softmax SpatialDropout1D SpatialDropout2D SpatialDropout3D SpectralNormalization
    StackedRNNCells Subtract TimeDistributed UnitNormalization UpSampling1D UpSampling2D UpSampling3D
    ZeroPadding1D ZeroPadding2D ZeroPadding3D""")

# Keras 2 class names that Keras 3 has under another name.
OLD_LAYERS = _words("Convolution1D Convolution2D Convolution3D BatchNormalizationV1 SyncBatchNormalization")

INITIALIZERS = _words("""
    Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity LecunNormal LecunUniform Ones Orthogonal
    RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros""")

REGULARIZERS = _words("L1 L2 L1L2 OrthogonalRegularizer")

CONSTRAINTS = _words("MaxNorm MinMaxNorm NonNeg UnitNorm")

ACTIVATIONS = _words("""
    celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear
    log_sigmoid log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus softsign
    sparse_plus sparse_sigmoid sparsemax squareplus swish tanh tanh_shrink threshold""")

# As some versions of tf.keras wrote softmax and relu.
OLD_ACTIVATIONS = _words("softmax_v2 relu_v2")

# Arithmetic on tensors in a functional model is written as an operation of one of these modules.
OPERATION_MODULES = frozenset({"keras.src.ops.numpy", "keras.src.ops.nn", "keras.src.ops.math"})

# Layers that leave the last dimension of their input as it is.
KEEPS_WIDTH = _words("""
    Activation ActivityRegularization AlphaDropout BatchNormalization Dropout ELU GaussianDropout
    GaussianNoise Identity LayerNormalization LeakyReLU Masking PReLU ReLU Rescaling RMSNormalization Softmax
    UnitNormalization""")
