import pytest

from byteledger import catalog, distributed, ledger, quantities, units
from byteledger.arguments import ArgumentError

DATA = catalog.load()
BASELINE = dict(b_w=2, b_g=2, b_master=4, b_m=4, b_v=4)


def per_rank(N, strategy, d, states=BASELINE):
    return distributed.persistent(N, **states, shards=DATA.strategies[strategy].shards, d=d)


@pytest.mark.parametrize("strategy, published_gb", [("ddp", 120), ("zero-1", 31.4), ("zero-2", 16.6), ("zero-3", 1.9)])
def test_zero_figure_1(strategy, published_gb):
    """Rajbhandari et al. 2019, Figure 1: 7.5B parameters, d = 64, K = 12."""
    assert units.gb(per_rank(7.5e9, strategy, 64)) == pytest.approx(published_gb, abs=0.05)


# Rajbhandari et al. 2019, Table 1: model states per device in GB for stages 1, 2 and 3, as printed. The rows of 128B and
# 1T are cut, not rounded, in print.
TABLE_1 = {
    7.5e9: {1: (120, 120, 120), 4: (52.5, 41.3, 30), 16: (35.6, 21.6, 7.5), 64: (31.4, 16.6, 1.88), 256: (30.4, 15.4, 0.47), 1024: (30.1, 15.1, 0.12)},
    128e9: {1: (2048, 2048, 2048), 4: (896, 704, 512), 16: (608, 368, 128), 64: (536, 284, 32), 256: (518, 263, 8), 1024: (513, 257, 2)},
    1e12: {1: (16000, 16000, 16000), 4: (7000, 5500, 4000), 16: (4750, 2875, 1000), 64: (4187, 2218, 250), 256: (4046, 2054, 62.5), 1024: (4011, 2013, 15.6)},
}


@pytest.mark.parametrize("N, d, stage, printed", [(N, d, i + 1, row[i]) for N, rows in TABLE_1.items() for d, row in rows.items() for i in range(3)])
def test_zero_table_1(N, d, stage, printed):
    computed = units.gb(per_rank(N, "zero-%d" % stage, d))
    digits = len(str(printed).partition(".")[2])
    cut = int(computed * 10**digits) / 10**digits
    assert printed in (round(computed + 1e-9, digits), cut), computed


@pytest.mark.parametrize("mp, published", [(1, (2, 7.6, 14.4, 128)), (2, (4, 15.2, 28.8, 256)), (8, (16, 60.8, 115.2, 1024)), (16, (32, 121.6, 230.4, 2048))])
def test_zero_table_2(mp, published):
    """Rajbhandari et al. 2019, Table 2: the largest model of 32 GB devices, d = 64 (they print 1T and 2T for the last two)."""
    for strategy, billions in zip(("ddp", "zero-1", "zero-2", "zero-3"), published):
        # mp shares the model, so each rank holds 1/mp of it: at the published size that share fills 32 GB.
        assert units.gb(per_rank(round(billions * 1e9 / mp), strategy, 64)) == pytest.approx(32, rel=0.01)


@pytest.mark.parametrize("W, published_gb", [(1, 1120), (8, 140), (16, 70), (64, 17.5)])
def test_whitepaper_sharding(W, published_gb):
    """Whitepaper 7.3: 70B under ideal sharding."""
    selection = {"parameters": "70B", "ledger": "bf16-adamw", "world_size": W}
    assert quantities.evaluate(DATA, "distributed.rank_lower", selection).value == units.from_gb(published_gb)


@pytest.mark.parametrize(
    "states, published",
    [
        (dict(b_w=2, b_g=4, b_master=4, b_m=4, b_v=4), {1: 18, 2: 12, 8: 7.5, 64: 6.1875}),  # bf16 p, fp32 g: 6 + 12/d
        (dict(b_w=4, b_g=4, b_master=0, b_m=4, b_v=4), {1: 16, 2: 12, 8: 9, 64: 8.125}),  # fp32: 8 + 8/d
    ],
    ids=["bf16-fp32-gradients", "fp32"],
)
def test_megatron_distributed_optimizer(states, published):
    """Megatron-LM, docs on the distributed optimizer: bytes per parameter and rank, which divides what ZeRO-1 divides."""
    for d, printed in published.items():
        assert per_rank(1_000_000, "zero-1", d, states) / 1_000_000 == pytest.approx(printed, rel=1e-12)


@pytest.mark.parametrize("strategy", [id for id, record in DATA.strategies.items() if record.shards is not None])
def test_one_rank_holds_everything(strategy):
    """d = 1 equals no sharding, whatever the strategy."""
    assert per_rank(70_000_000_000, strategy, 1) == ledger.persistent(70_000_000_000, **BASELINE)


def test_ranks_sum_to_the_job():
    """Full sharding divides the job's state and loses none: W ranks hold it once, DDP's W times."""
    whole = ledger.persistent(70_000_000_000, **BASELINE)
    for W in (2, 8, 64, 512):
        assert W * per_rank(70_000_000_000, "zero-3", W) == whole
        assert W * per_rank(70_000_000_000, "ddp", W) == W * whole
        assert per_rank(70_000_000_000, "zero-3", W) == distributed.rank_lower(whole, W)


def test_fsdp_strategies_differ():
    """PyTorch's documentation: NO_SHARD is like DDP, FULL_SHARD divides all, HYBRID_SHARD divides within its group only."""
    N, W = 70_000_000_000, 64
    hybrid = quantities.evaluate(
        DATA, "distributed.persistent", {"parameters": N, "ledger": "bf16-adamw", "strategy": "fsdp-hybrid-shard", "world_size": W, "replicas": 8}
    ).value
    assert per_rank(N, "fsdp-no-shard", W) == per_rank(N, "ddp", W)
    assert per_rank(N, "fsdp-full-shard", W) == per_rank(N, "zero-3", W)
    assert hybrid == per_rank(N, "fsdp-full-shard", 8) == 8 * per_rank(N, "fsdp-full-shard", 64)
    assert DATA.strategies["fsdp-shard-grad-op"].gathers == "model"
    assert distributed.gathered_weights(N, 2) == units.from_gb(140)


@pytest.mark.parametrize("replicas", [3, 5, 128])
def test_there_is_no_fraction_of_a_rank(replicas):
    with pytest.raises(ArgumentError, match="replicas = %d: must divide W = 64" % replicas):
        distributed.shard_group(64, replicas)


def test_hybrid_shard_needs_its_replicas():
    selection = {"parameters": "70B", "ledger": "bf16-adamw", "strategy": "fsdp-hybrid-shard", "world_size": 64}
    with pytest.raises(ArgumentError, match="replicas"):
        quantities.evaluate(DATA, "distributed.persistent", selection)
    with pytest.raises(ArgumentError, match="only HYBRID_SHARD"):
        quantities.evaluate(DATA, "distributed.persistent", {**selection, "strategy": "zero-3", "replicas": 8})


@pytest.mark.parametrize("bad", [0, -8, 2.5, float("nan"), True, "8"])
def test_bad_ranks_are_refused_by_name(bad):
    with pytest.raises(ArgumentError) as error:
        distributed.rank_lower(1e12, bad)
    assert error.value.name == "W" and repr(bad) in str(error.value)
    with pytest.raises(ArgumentError) as error:
        per_rank(7, "zero-3", bad)
    assert error.value.name == "d"


def test_an_unknown_strategy_is_refused_by_name():
    selection = {"parameters": "70B", "ledger": "bf16-adamw", "strategy": "zero-4", "world_size": 8}
    with pytest.raises(catalog.UnknownId, match="'zero-4' in data/strategies.yaml; did you mean 'zero-"):
        quantities.evaluate(DATA, "distributed.persistent", selection)
    with pytest.raises(ArgumentError, match="shards = 'activations': unknown group"):
        distributed.weights(7, 2, ["activations"], 2)
    with pytest.raises(ArgumentError, match="shards = 'weights'"):
        distributed.weights(7, 2, "weights", 2)


def test_offload_is_refused_not_guessed():
    selection = {"parameters": "70B", "ledger": "bf16-adamw", "strategy": "zero-offload", "world_size": 8}
    with pytest.raises(ArgumentError, match="strategy = 'zero-offload': not modelled"):
        quantities.evaluate(DATA, "distributed.persistent", selection)
