"""Korean questions and answers: the models bi-ko, poly and cross read Korean and English."""

import tercet
from tercet.data.sample import questions

scorer = tercet.load("bi-ko")
answers = [entry.answer for entry in questions("ko")]
for ranked in scorer.rank("비밀번호가 기억나지 않아요", answers, k=2):
    print(f"{ranked.score:.2f} {ranked.text}")
print(scorer.rank("I cannot remember my password", answers, k=1)[0].text)  # an English question
