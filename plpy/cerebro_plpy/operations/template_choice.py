"""The templates that a call of `cerebro.train` tries on a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates import registry
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.operations.tree_support import NO_TREES, TreeSupport, has_trees
from cerebro_plpy.preprocessing.learning.data_checks import suggest_input_of_kind
from cerebro_plpy.preprocessing.learning.raw_table import RawTable


class TemplateChoice(NamedTuple):
    """The choice of templates, as far as it does not depend on the table."""

    module: str  # the function that was called
    named_templates: Sequence[Template] | None  # those that the call names; None for the usual ones
    is_short: bool = False  # a short budget begins with those that compile in the least time
    is_counted: bool = False  # the call sets the number of configurations
    tree_support: TreeSupport = NO_TREES

    def choose(self, table: RawTable) -> tuple[Template, ...]:
        """Return the templates to try on a table, in their order.

        Of usual templates, a baseline comes first, so that there is a model soon. A call that sets
        the number of configurations tries the best templates first. A short budget goes on with
        those that compile in the least time. Trees are left out if they cannot be trained.

        Raises:
            InvalidParameter: a template that the call names does not fit the table.
            FeatureNotSupported, ObjectNotReady, OutOfMemory: it names trees, which cannot be
                trained.
        """
        if self.named_templates is not None:
            return self._check_templates(self.named_templates, table)
        templates = registry.choose_templates(table.recipe.table)
        if self.tree_support.find_obstacle(table) is not None:
            templates = tuple(template for template in templates if not has_trees([template]))
        if self.is_short:
            templates = templates[::-1]
        if self.is_counted:
            return templates
        return registry.put_baselines_first(templates)

    def _check_templates(
        self, templates: Sequence[Template], table: RawTable
    ) -> tuple[Template, ...]:
        inputs = table.recipe.table
        head = table.target.head
        obstacle = self.tree_support.find_obstacle(table)
        for template in templates:
            if not template.suits(inputs):
                raise InvalidParameter(
                    f"models names template {template.name!r}, which is for {template.requirement};"
                    " there is none.",
                    hint=suggest_input_of_kind(template.kind, table.columns, table.recipe),
                )
            if obstacle is not None and has_trees([template]):
                raise obstacle.to_error(self.module)
            # A network that does not fit raises an error here.
            params = template.params(head, table.rows, {})
            template.build_architecture(inputs, head, params, epochs=1)
        return tuple(templates)

    def choose_tree_period(self, table: RawTable) -> int:
        """Return the period of the buffers of a table from which trees learn; 1 for all."""
        if not has_trees(self.choose(table)):
            return 1
        return self.tree_support.choose_period(table)

    def report_trees(self, db: Database, table: RawTable) -> None:
        """Report why usual trees are not tried on a table, or why they learn from a sample."""
        obstacle = self.tree_support.find_obstacle(table)
        usual = registry.choose_templates(table.recipe.table)
        if obstacle is None:
            self._report_sample(db, table)
        elif self.named_templates is None and has_trees(usual):
            text = f"template boosting is left out: {obstacle.reason}. {obstacle.remedy}"
            db.notice(text.rstrip())

    def _report_sample(self, db: Database, table: RawTable) -> None:
        if has_trees(self.choose(table)):
            sample = self.tree_support.describe_sample(table)
            if sample is not None:
                db.notice(sample)
