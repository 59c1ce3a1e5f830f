"""Several binary problems on the same passes over the rows."""

from __future__ import annotations

from threading import Condition

from exclusivity.solvers.blockwise.rows import Answer, BlockRows, Question


class Meeting:
    """Several solvers, each in its thread, that look at the rows together.

    A pass over the rows starts when everybody who has not left has a question.

    Parameters
    ----------
    rows : BlockRows
    n_parties : int
    """

    def __init__(self, rows: BlockRows, n_parties: int) -> None:
        self.rows, self.n_parties, self._n_present = rows, n_parties, n_parties
        self._questions: dict[int, Question] = {}
        self._answers: dict[int, Answer] = {}
        self._error: BaseException | None = None
        self._is_held = False
        self._changed = Condition()

    def ask(self, party: int, question: Question) -> Answer:
        """Wait for the others, then for the answer."""
        with self._changed:
            self._questions[party] = question
            while party not in self._answers:
                if self._error is not None:
                    raise self._error
                if len(self._questions) == self._n_present and not self._is_held:
                    self._hold()
                else:
                    self._changed.wait()
            return self._answers.pop(party)

    def leave(self) -> None:
        """One party less."""
        with self._changed:
            self._n_present -= 1
            self._changed.notify_all()

    def stop(self, error: BaseException) -> None:
        """Nobody gets another answer, and the pass that is under way is given up."""
        with self._changed:
            self._error = error
            self._changed.notify_all()
        self.rows.abandon(error)

    def _hold(self) -> None:
        parties = sorted(self._questions)
        questions = [self._questions[party] for party in parties]
        self._is_held = True
        self._changed.release()  # during the pass: others may leave, or stop it
        try:
            answers = self.rows.ask(questions)
        except BaseException as error:
            self._changed.acquire()
            self._error = error
            raise
        else:
            self._changed.acquire()
            self._answers.update(zip(parties, answers, strict=True))
        finally:
            self._is_held = False
            self._questions.clear()
            self._changed.notify_all()
