"""What becomes of what a framework raises."""

from __future__ import annotations

import pytest

from cerebro_trainer.commands.program_cache import ProgramCache
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.programs.program import Framework, Program


class Gone(RuntimeError):
    """What a device says that computes nothing more."""


def unable(*_: object) -> Program:
    raise NotImplementedError


FRAMEWORK = Framework(
    name="none",
    version="1",
    keras_version="3",
    devices=("GPU:0",),
    threads=1,
    make_program=unable,
    errors=(),
    memory_errors=(MemoryError,),
    fatal_errors=(Gone,),
    describe_gpus=lambda: (),
)


@pytest.mark.parametrize(
    ("raised", "becomes"),
    [(RuntimeError("wrong"), ConfigError), (MemoryError(), ConfigError), (Gone(), Gone)],
)
def test_only_what_ends_the_process_is_no_failure_of_a_config(
    raised: Exception, becomes: type[Exception]
) -> None:
    with pytest.raises(becomes), ProgramCache(FRAMEWORK).catch_errors(hide_details=False):
        raise raised
