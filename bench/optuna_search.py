"""A peer: Optuna over plain Keras, with its successive halving. Two processes, each tied to a core,
share one study through a file, as its documentation advises; the rows are read once, and shared."""

from __future__ import annotations

from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from bench.job import Job, Result, arguments, write_result
from bench.keras_config import one_hot, prepare, read
from bench.keras_fit import core, epochs, forked

ETA = 3
NAME = "search"


def main() -> None:
    """Do the job that the command line names: each of its configurations is a trial."""
    job, result_path = arguments()
    rows, architectures, received = read(job)
    train, valid = (one_hot(examples, job.classes) for examples in rows)
    file = Path(job.folder) / "optuna.log"
    file.unlink(missing_ok=True)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.create_study(storage=_storage(file), study_name=NAME)

    def work(process: int) -> None:
        keras = prepare(job.framework, [core(process)])

        def objective(trial: optuna.Trial) -> float:
            number, loss = trial.suggest_int("number", 0, len(job.configs) - 1), float("inf")
            for epoch, (loss, accuracy) in enumerate(
                epochs(keras, job, number, architectures, train, valid), 1
            ):
                trial.report(loss, epoch)
                trial.set_user_attr("accuracy", accuracy)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return loss

        _study(job, file).optimize(objective)

    forked(job, work)
    write_result(Result(scores=_scores(_study(job, file)), moved_bytes=received), result_path)


def _storage(file: Path) -> JournalStorage:
    return JournalStorage(JournalFileBackend(str(file)))


def _study(job: Job, file: Path) -> optuna.Study:
    sampler = optuna.samplers.GridSampler({"number": list(range(len(job.configs)))}, seed=job.seed)
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=ETA)
    return optuna.load_study(
        storage=_storage(file), study_name=NAME, sampler=sampler, pruner=pruner
    )


def _scores(study: optuna.Study) -> dict[int, tuple[float, float]]:
    """The loss of each configuration after its last epoch, and its accuracy."""
    return {
        trial.params["number"] + 1: (
            trial.intermediate_values[trial.last_step],
            trial.user_attrs["accuracy"],
        )
        for trial in study.trials
        if trial.last_step is not None
    }


if __name__ == "__main__":
    main()
