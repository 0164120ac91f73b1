"""A peer: Optuna over plain Keras, with its successive halving.

Two processes, each bound to a core, share a study through a file, as Optuna's documentation
advises. The rows are read once and shared.
"""

from __future__ import annotations

from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from bench.job import Job, Result, parse_arguments, write_result
from bench.keras_config import encode_one_hot, prepare, read
from bench.keras_fit import choose_core, fit_epochs, run_processes

ETA = 3
NAME = "search"


def main() -> None:
    """Do the job of the command line, with a trial for each configuration."""
    job, result_path = parse_arguments()
    rows, architectures, received = read(job)
    train, valid = (encode_one_hot(examples, job.classes) for examples in rows)
    file = Path(job.folder) / "optuna.log"
    file.unlink(missing_ok=True)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.create_study(storage=_open_storage(file), study_name=NAME)

    def work(process: int) -> None:
        keras = prepare(job.framework, [choose_core(process)])

        def objective(trial: optuna.Trial) -> float:
            number = trial.suggest_int("number", 0, len(job.configs) - 1)
            loss = float("inf")
            for epoch, (loss, accuracy) in enumerate(
                fit_epochs(keras, job, number, architectures, train, valid), 1
            ):
                trial.report(loss, epoch)
                trial.set_user_attr("accuracy", accuracy)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return loss

        _load_study(job, file).optimize(objective)

    run_processes(job, work)
    write_result(
        Result(scores=_read_scores(_load_study(job, file)), moved_bytes=received), result_path
    )


def _open_storage(file: Path) -> JournalStorage:
    return JournalStorage(JournalFileBackend(str(file)))


def _load_study(job: Job, file: Path) -> optuna.Study:
    sampler = optuna.samplers.GridSampler({"number": list(range(len(job.configs)))}, seed=job.seed)
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=ETA)
    return optuna.load_study(
        storage=_open_storage(file), study_name=NAME, sampler=sampler, pruner=pruner
    )


def _read_scores(study: optuna.Study) -> dict[int, tuple[float, float]]:
    """Return the last loss and accuracy of each configuration, by its number from 1."""
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
