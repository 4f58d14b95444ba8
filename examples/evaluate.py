"""Compare a bi-encoder with BM25 on your own rows, with a confidence interval and a paired test."""

from tercet.evaluate.model_names import parse_model_name
from tercet.evaluate.run import Evaluation
from tercet.evaluate.tasks.load import load_task
from tercet.settings.tasks import read_task

task = load_task(read_task("answers:sample:faq.en"))  # or a file of yours with the columns context and answer
table = Evaluation([parse_model_name("bi"), parse_model_name("bm25")]).table(task)
for row in table.rows:
    estimate = row.estimates[row.main_metric]
    print(f"{row.label}: {row.main_metric} {100 * estimate.value:.1f}")
print(table.verdicts["bm25"].verdict)
