"""Chapter 7: the moments of one training step on one rank, and which of them is the peak.

Symbols: B sequences of S tokens in a micro-batch, D hidden size, V vocabulary; c bytes of an element while it is computed
with, r while a gradient is reduced, b_g where a gradient is kept. l_i elements of layer i, s_i those of its gradient that
this rank keeps, R elements of the root unit (embedding, head, final norm). All results are bytes on one rank.

A moment is {term: bytes}: what is allocated at the same time. The largest sum of a moment is the peak. The maxima of the
terms are not added up: they do not stand at the same time.

Derived from what autograd keeps and frees; held to PyTorch's FSDPMemTracker (torch 2.13.0, transformers 5.24.0).
"""

from .arguments import ArgumentError, finite

TERMS = (
    "weights", "gradients", "master", "optimizer", "activations", "loss", "gathered", "in_flight", "weight_copies", "buffers", "temporaries",
)  # fmt: skip
GATHERS = ("none", "layer", "model")


class Unit:
    """A decoder layer as one rank computes it, `times` of the same in a row.

    gathered: bytes of its weights where they are gathered, padding included. gradient: bytes of its whole gradient; reduced:
    elements of the buffer that reduces it, padding included; kept: those that stay on the rank. saved: bytes that the
    layer keeps for its backward (those of the checkpoint, if it is one). checkpointed: the layer's input is all that it keeps.
    shares_input: its first norm keeps that very tensor. backward: [(activations, weight gradients, temporaries)] at the heights
    of the layer's backward, None where there is no model of them.
    """

    __slots__ = ("gathered", "gradient", "reduced", "kept", "saved", "checkpointed", "shares_input", "backward", "times")

    def __init__(self, gathered, gradient, reduced, kept, saved, checkpointed, shares_input, backward, times=1):
        self.gathered, self.gradient, self.reduced, self.kept, self.saved = gathered, gradient, reduced, kept, saved
        self.checkpointed, self.shares_input, self.backward, self.times = checkpointed, shares_input, backward, times


def dense_backward(saved, D, f, n, b, elements):
    """M_i = max(saved + 2 b n f + b D f, saved - 3 b n f + 3 b D f + 2 b n D, saved - 4 b n f + 3 b D f + 16 n D, b l + 24 n D): heights.

    Of a Llama-like layer's backward: after the product of the gated MLP; in the gate's projection; in the norm before them, whose
    backward is in FP32; in the layer's first norm, when all gradients of the layer's weights exist (in FP32 b l + 20 n D + 8 n, and
    no third height). n = S B tokens, b bytes per element, l elements.
    Returns [(activations, weight gradients, temporaries)]. Source: measured, tests/test_observed.py.
    """
    heights = [(saved, b * D * f, 2 * b * n * f), (saved - 4 * b * n * f, 3 * b * D * f, b * n * f + 2 * b * n * D)]
    if b == 2:
        heights.append((saved - 8 * n * f, 3 * b * D * f, 16 * n * D))
    # In FP32 the norm needs no copy of its input.
    heights.append((0, b * elements, 24 * n * D if b == 2 else 20 * n * D + 8 * n))
    return heights


def attention_backward(kept, read, queries, keys_values, elements, b):
    """M_i = kept + b (l - l_read) + b (2 n a d + 2 n k d): the height of a layer's backward in a fused attention.

    kept: bytes of what the first norm, the norms of queries and keys and attention itself still hold. l_read: elements of the
    weights that read the first norm's output, of those norms and of the first one, whose gradients are still to come. There are
    the gradients of the output, n a d = queries, and of queries, keys and values, keys_values = 2 n k d. What a GPU's kernel
    allocates inside is not in it. Returns (activations, weight gradients, temporaries). Source: derived, then measured, tests/test_observed.py.
    """
    return kept, b * (elements - read), b * (2 * queries + keys_values)


def projection_backward(norm, D, queries, n, b, elements):
    """M_i = norm + 4 n + b (l - D) + b (2 n D + n a d): the height of a layer's backward in the projection of its queries, the last.

    norm: bytes that the first norm keeps. Beside it the gradient that keys and values have sent back, the one that is made now,
    and the queries' = n a d. Returns (activations, weight gradients, temporaries). Source: derived, then measured, tests/test_observed.py.
    """
    return norm + 4 * n, b * (elements - D), b * (2 * n * D + queries)


def materialized_backward(D, f, n, b, queries, repeated, scores, normalized):
    """M_i = 12 a s^2 b + 8 n D + 4 n + 3 b n a d + b (3 D f + D a d + D): the height of a layer's backward in the softmax of eager attention.

    scores = a S^2 B elements: in BF16 their softmax in FP32 and its BF16 copy, and gradients of both; in FP32 two of 4 bytes and
    two gradients, and 12 n D for 8. queries = n a d; repeated: those of keys and values once they are repeated to all heads;
    normalized: bytes that a norm of queries and keys keeps. Returns (activations, weight gradients, temporaries). Source: as above.
    """
    held = (8 if b == 2 else 12) * n * D + 4 * n + b * (2 * queries + repeated) + normalized
    saved, gradients = (6, 6) if b == 2 else (4, 8)
    return held + saved * scores, b * (3 * D * f + D * queries // n + D), gradients * scores


def normalized_backward(D, d, queries, keys, n, b, elements):
    """M_i = max(b (l - D a d - D) + 10 n D + 24 n a d, b (l - D a d - D k d - d - D) + 10 n D + 24 n k d + 8 n a d + 4 n a) + 4 n: in QK norm.

    The heights of a layer's backward in the norm of its queries and, before it, in that of its keys, BF16: as in a layer's first
    norm, but queries = n a d or keys = n k d wide. Beside them stand the input that the projections read, 8 n D with its norm's,
    and the gradient that was sent back to it so far, 2 n D; beside the keys' what the queries' norm keeps, and the queries'
    gradient. In FP32 16 n D for 10, 12 n a d for 8. Returns [(activations, weight gradients, temporaries)].
    Source: derived, then measured, tests/test_observed.py.
    """
    kept, waiting = (10 * n * D, 8) if b == 2 else (16 * n * D, 12)
    a_d, k_d = queries // n, keys // n
    return [
        (kept + 4 * n, b * (elements - D * a_d - D), 24 * queries),
        (kept + 4 * n + waiting * queries + 4 * queries // d, b * (elements - D * a_d - D * k_d - d - D), 24 * keys),
    ]


def routed_backward(saved, D, f, rows, tokens, b, elements, expert_elements):
    """M_i = max(saved - 2 b rows f - b rows D - 8 rows + b E_n, b l + 24 sbD): heights of an expert layer's backward, grouped_mm.

    rows: tokens times experts per token; E_n elements of the experts. In the gradient of gate and up, all gradients of
    the experts' weights exist; what the product was made of is gone, and the order that rows go back in; its gradient of 2 f
    rows and that of the input are there. Then as in dense_backward.
    Returns [(activations, weight gradients, temporaries)]. Source: measured, tests/test_observed.py.
    """
    gone = 4 * b * rows * f + b * rows * D + 8 * rows
    return [(saved - gone, b * expert_elements, 2 * b * rows * f + b * rows * D), (0, b * elements, 24 * tokens * D)]


def gpt2_backward(saved, D, f, n, b, elements, scores, materialized):
    """M_i = max(saved + b D f + 2 b n f, b l + 2 b n D): heights of the backward of GPT-2's block, without dropout.

    In the written-out GELU; at the first norm, between the gradient that it gets and the one that it gives. With materialized
    scores also in the softmax, where what the MLP, its norm and the output projection had kept is gone, the gradients of
    their weights exist, the values' gradient is there, and two matrices of scores are written.
    Returns [(activations, weight gradients, temporaries)]. Source: measured, tests/test_observed.py.
    """
    heights = [(saved, b * D * f, 2 * b * n * f), (0, b * elements, 2 * b * n * D)]
    if materialized:
        heights.append((saved - 5 * b * n * f - 3 * b * n * D, b * (2 * D * f + D * D), 2 * b * scores + b * n * D))
    return heights


class Step:
    """A training step as one rank goes through it; its methods give the moments.

    units: the Units of the rank, from the input on. root: the Unit of what is no layer. weights, master, optimizer: bytes at rest.
    b_g, r: bytes per element of a kept gradient and of one in reduction.

    Gradients, in bytes: head: of the output head (of the embedding that it is tied to) and of the final norm, there through all of
    backward; 0 where this rank has none or they are frozen. embedding: of the embedding; tied: it is added to that of the head.
    positions: of learned positions. last: of the root's last tensor, which outlives the copy into the buffer that reduces it.
    dx: of the hidden states, walking down. reduces: True where a gradient leaves as soon as its layer is done. accumulated: True
    where gradients of an earlier micro-batch, or a buffer for them, stand all the time.

    Weights: gathers: none, layer, model, or a whole number of ranks that they are spread over after forward. live: bytes of gathered
    weights that stay, whatever layer is at work (DeepSpeed's limit); None: as gathers says. weight_copies: bytes of casts held from
    forward to backward. initial: bytes before they are sharded, None: never more than at rest.

    Activations, in bytes: outside: (kept between the last layer and the loss, kept for all layers until the first one's backward
    is done). held: what the model's forward holds until it returns. final_norm: (what the norm after the last layer takes in forward
    beside what it keeps, all that it takes in backward), None where it has no model. loss: (kept, logits, more in its forward, more
    in its backward). labels: shifted labels, until the loss goes backward. waiting: of the other micro-batches in flight.

    Else, in bytes: fixed: inputs and tables, there all the time. buffers: of communication, there all the time; bucket: those that
    exist from backward to the reduction. update: temporaries of the optimizer.
    """

    def __init__(
        self, units, root, weights, master, optimizer, b_g, r, head, embedding, positions, tied, gathers, reduces, outside, fixed, loss, dx, update,
        final_norm=None, held=0, labels=0, last=0, accumulated=False, waiting=0, weight_copies=0, buffers=0, bucket=0, initial=None, live=None,
    ):  # fmt: skip
        if gathers not in GATHERS and not (isinstance(gathers, int) and gathers > 0):
            raise ArgumentError("gathers", gathers, "must be one of %s or a number of ranks" % ", ".join(GATHERS))
        self.units, self.root, self.weights, self.master, self.optimizer = units, root, weights, master, optimizer
        self.b_g, self.r, self.head, self.gathers, self.reduces = b_g, r, head, gathers, reduces
        self.embedding, self.positions, self.tied = embedding, positions, tied
        self.outside, self.fixed, self.dx, self.update_temporaries = outside, fixed, dx, update
        self.loss_kept, self.loss_logits, self.loss_forward, self.loss_backward = loss
        self.final_norm, self.held, self.labels, self.last = final_norm, held, labels, last
        self.accumulated, self.waiting, self.weight_copies = accumulated, waiting, weight_copies
        self.buffers, self.bucket, self.initial, self.live = buffers, bucket, initial, live
        self.gathered = sum(unit.gathered * unit.times for unit in units)
        self.kept = sum(unit.kept * unit.times for unit in units)
        self.saved = sum(unit.saved * unit.times for unit in units)
        self.floor = False  # backward() has found a layer without heights
        self.layer = None  # where backward() found the largest sum: the index among the rank's layers

    def gradients(self):
        """M_g = b_g (sum of s_i + s_root): the kept gradients, all there."""
        return self.b_g * (self.kept + self.root.kept)

    def _rest(self, **terms):
        moment = {"weights": self.weights, "master": self.master, "optimizer": self.optimizer, "gradients": self.gradients() if self.accumulated else 0}
        moment["buffers"] = self.buffers + self.fixed
        for term, n in terms.items():
            moment[term] = moment.get(term, 0) + n
        return moment

    def _gathered(self, unit, coming, up_to):
        """Bytes of gathered weights while `unit` is at work, `coming` is on its way and `up_to` bytes lie at or before it.

        Spread over a number of ranks: so are all layers up to the one at work, which gave its part up when it was gathered.
        """
        if self.live is not None:
            return self.live
        if self.gathers == "none":
            return 0
        if self.gathers == "model":
            return self.root.gathered + up_to
        gathered = self.root.gathered + (unit.gathered if unit else 0) + (coming.gathered if coming else 0)
        return gathered if self.gathers == "layer" else gathered - (-(up_to - (unit.gathered if unit else 0)) // self.gathers)

    def _places(self):
        """A _Place for each end of a row of equal layers, from the input on."""
        last = len(self.units) - 1
        position = saved = gathered = kept = 0  # of all layers below the row
        for index, unit in enumerate(self.units):
            for offset in sorted({0, 1, unit.times - 2, unit.times - 1}):
                if 0 <= offset < unit.times:
                    yield _Place(
                        position + offset,
                        unit,
                        unit if offset < unit.times - 1 else (self.units[index + 1] if index < last else None),
                        unit if offset else (self.units[index - 1] if index else None),
                        saved + offset * unit.saved,
                        gathered + (offset + 1) * unit.gathered,
                        self.kept - kept - (offset + 1) * unit.kept,
                    )
            position, saved = position + unit.times, saved + unit.times * unit.saved
            gathered, kept = gathered + unit.times * unit.gathered, kept + unit.times * unit.kept

    def forward(self):
        """M_forward(i) = rest + c R + 2 c l_i + c l_(i-1) (model: + c sum of l_j, j < i) + saved below + dx: where layer i is gathered.

        The buffer of a gather lives until the next one is done, so those of the layer before (of the root, for the first
        one) and of this layer stand beside this layer's weights. The largest over all i, or, where layers stay gathered, the norm
        after the last one: rest + c R + c sum l_i + c l_L + sum of saved + outside + 8 n D (BF16, Llama's norm).
        """
        moments = []
        for place in self._places():
            gathered = self._gathered(place.unit, None, place.gathered)
            if self.live is None and self.gathers != "none":
                gathered += place.unit.gathered + (place.below or self.root).gathered
            # The layer's input, and what it is made of, unless a checkpoint, or a norm that needs no copy, keeps the input itself.
            inputs = self.dx * (2 if place.below and not (place.unit.checkpointed or place.unit.shares_input) else 1)
            activations = self.waiting + self.outside[1] + self.held + place.saved + inputs
            moments.append(self._rest(gathered=gathered, weight_copies=self.weight_copies, activations=activations))
        if self.final_norm and self.units:
            moments.append(self._final_norm(self.units[-1]))
        return max(moments, key=_total, default=self._rest())

    def _final_norm(self, last):
        """The norm after the last layer: all activations are there, and the buffer of the last gather still stands."""
        gathered = self._gathered(None, last, self.gathered)
        return self._rest(
            gathered=gathered + (last.gathered if self.gathers == "model" and self.live is None else 0),
            weight_copies=self.weight_copies,
            activations=self.saved + self.waiting + sum(self.outside) + self.held,
            temporaries=self.final_norm[0],
        )

    def loss(self):
        """M_loss = rest + c R + c l_last (model: c sum l_i) + sum of saved + outside + kept, logits and backward of the loss.

        Where the loss goes backward: every layer's activations are there, and the logits several times. Or, if that is more,
        its forward, when without a reshard the buffer of the last layer's gather still stands besides. Weights spread over a
        number of ranks: those parts, too. Or, unless layers stay gathered, where the root is gathered again for backward:
        M_loss = rest + 2 c R (+ (c sum l_i + c R) / ranks) + saved + outside + kept + logits.
        """
        last = self.units[-1] if self.units else None
        gathered = self._gathered(None, last, self.gathered)
        forward = self.loss_forward + (last.gathered if last and self.gathers == "model" and self.live is None else 0)
        moment = self._rest(
            gathered=gathered,
            weight_copies=self.weight_copies,
            activations=self.saved + self.waiting + sum(self.outside),
            loss=self.loss_kept + self.loss_logits + self.loss_backward,
        )
        if forward > self.loss_backward:
            moment["loss"] += self.loss_forward - self.loss_backward
            moment["gathered"] += forward - self.loss_forward
        if self.live is None and self.gathers not in ("none", "model"):
            spread = 0 if self.gathers == "layer" else -(-(self.gathered + self.root.gathered) // self.gathers)
            again = {**moment, "gathered": 2 * self.root.gathered + spread, "loss": self.loss_kept + self.loss_logits + self.labels}
            moment = max(moment, again, key=_total)
        return moment

    def backward(self):
        """M_back(i) = rest + gathered + b_g sum of s_j, j > i + r l_(i+1) + saved below + height of layer i + c V D + dx + logits.

        Or the norm after the last layer: rest + gathered + saved + 24 n D + c V D + logits (BF16; FP32 20 n D + 8 n).

        Gathered: root, layer i and the next to come, i - 1 (model: all up to i). r l_(i+1): the gradient of the layer above on its
        way. The largest over all i whose heights are modelled, or the backward of the embedding after them. Within a row of
        equal layers M_back is a straight line in i but for its ends, so the ends decide.
        """
        self.floor = any(unit.backward is None for unit in self.units)
        moments = [(self._layer_backward(place), place.position) for place in self._places() if place.unit.backward is not None]
        if self.final_norm and self.units:
            moments.append((self._final_norm_backward(self.units[-1]), None))
        at, self.layer = max([*moments, (self.embedding_backward(), None)], key=lambda found: _total(found[0]))
        return at

    def _final_norm_backward(self, last):
        """Before the first layer's backward: that of the norm above it, with everything that the layers keep."""
        return self._rest(
            gathered=self._gathered(None, last, self.gathered),
            in_flight=self.head + self.bucket,
            activations=self.waiting + self.outside[1] + self.saved,
            loss=self.loss_logits,
            temporaries=self.final_norm[1],
            weight_copies=self.weight_copies,
        )

    def _layer_backward(self, place):
        """The moment of one layer's backward, at the highest of its heights."""
        unit = place.unit
        activations, gradients, temporaries = height = max(unit.backward, key=sum)
        in_flight = self.r * place.above.reduced if self.reduces and place.above else 0
        gathered = self._gathered(unit, place.below, place.gathered)
        if self.reduces and not place.above and sum(height) < unit.gradient + self.r * unit.reduced - unit.gathered:
            # Nothing above is on its way. When the topmost layer's weights are gone, its whole gradient stands beside
            # the buffer that reduces it.
            activations, gradients, temporaries, in_flight = 0, unit.gradient, 0, self.r * unit.reduced
            gathered -= unit.gathered
        return self._rest(
            gathered=gathered,
            gradients=0 if self.accumulated else self.b_g * place.kept_above,
            in_flight=in_flight + self.head + gradients + self.bucket,
            activations=self.waiting + self.outside[1] + place.saved + (unit.saved if unit.checkpointed and not unit.shares_input else 0) + activations,
            loss=self.loss_logits,
            temporaries=temporaries + self.dx,
            weight_copies=self.weight_copies,
        )

    def embedding_backward(self):
        """M_embedding = rest + c R + b_g sum of s_i + r l_0 + head + embedding (tied: twice) + positions + dx (untied) + logits: after the first layer.

        The gradient of the embedding beside that of the head and the gradient that it is made of; a tied table adds the two up
        in a third tensor, when that is gone.
        """
        first = self.units[0] if self.units else None
        tables = self.head + self.positions + self.embedding * (2 if self.tied and self.head else 1)
        return self._rest(
            gathered=self._gathered(None, None, 0),
            gradients=0 if self.accumulated else self.b_g * self.kept,
            in_flight=(self.r * first.reduced if self.reduces and first else 0) + tables + self.bucket,
            loss=self.loss_logits,
            activations=self.waiting,
            temporaries=0 if self.tied else self.dx,
        )

    def reduce(self):
        """M_reduce = rest + b_g sum of s_i + r R + max(c R, r s_R + c l_last) + logits: the root's gradient on its way.

        While it is copied into the buffer that reduces it, or when its share is there and, of what was copied, only the last
        tensor's gradient; that is more on two or three ranks. Without reduction, all gradients.
        """
        if self.reduces:
            return self._rest(
                gradients=0 if self.accumulated else self.b_g * self.kept,
                in_flight=self.r * self.root.reduced + max(self.root.gradient, self.r * self.root.kept + self.last) + self.bucket,
                loss=self.loss_logits,
                activations=self.waiting,
            )
        return self._rest(gradients=0 if self.accumulated else self.gradients(), in_flight=self.bucket, loss=self.loss_logits, activations=self.waiting)

    def update(self):
        """M_optimizer,step = rest + M_g + temporaries of the optimizer."""
        return self._rest(gradients=0 if self.accumulated else self.gradients(), temporaries=self.update_temporaries)

    def moments(self):
        """{moment: {term: bytes}} of those that are modelled, in the order of a step."""
        found = {"forward": self.forward(), "loss": self.loss(), "backward": self.backward(), "reduce": self.reduce(), "optimizer": self.update()}
        if not self.loss_kept + self.loss_backward + self.loss_logits:  # a pipeline stage without one: forward just ends
            found["forward"] = max(found["forward"], found.pop("loss"), key=_total)
        if self.initial is not None:
            found = {"initialization": {"weights": self.initial}, **found}
        return found


class _Place:
    """A layer among the others. position: from 0. above, below: its neighbours, None at the ends. saved: bytes kept of the layers
    below; gathered: bytes of the weights up to and with this one; kept_above: elements of the kept gradients above."""

    __slots__ = ("position", "unit", "above", "below", "saved", "gathered", "kept_above")

    def __init__(self, position, unit, above, below, saved, gathered, kept_above):
        self.position, self.unit, self.above, self.below = position, unit, above, below
        self.saved, self.gathered, self.kept_above = saved, gathered, kept_above


def _total(moment):
    return sum(moment.values())


def peak(moments):
    """M_peak = max over the moments of the sum of their terms. Returns (moment, bytes)."""
    moment = max(moments, key=lambda name: _total(moments[name]))
    return moment, finite("M_peak", _total(moments[moment]))
