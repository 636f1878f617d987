"""The three steps on instances small enough to be computed by hand."""

import dataclasses

from tests.solvers.greedy.helpers import job, planned, problem

#: Rates of 1, 1.8 and 3 iterations/s on 1, 2 and 4 GPUs.
CURVE = (("c", 1, 1.0), ("c", 2, 1.8), ("c", 4, 3.0))
BARE = {"elastic": False, "fill": False, "share": "constant"}


def test_least_level_that_meets_the_deadline_is_held_until_done():
    """Work 50 by 40 s needs 2 GPUs (72 possible, 40 with one), and is done in the third slot."""
    assert planned(problem([job("a", 40, 50, *CURVE)], c=4), **BARE) == {
        "a": ["c2", "c2", "c2", "-"]
    }


def test_two_level_plan_is_late_heavy():
    """Level 2 from slot 1 on does all of 50, one GPU before; done in the last slot: 10 + 18 + 18 + 18."""
    instance = problem([job("a", 40, 50, *CURVE)], c=4)
    assert planned(instance, **BARE | {"share": "two_level"}) == {"a": ["c1", "c2", "c2", "c2"]}


def test_two_level_plan_of_the_least_level_idles_first():
    """One GPU does 20 in the last two slots, and nothing is below one GPU."""
    instance = problem([job("a", 40, 20, *CURVE)], c=4)
    assert planned(instance, **BARE | {"share": "two_level"}) == {"a": ["-", "-", "c1", "c1"]}


def test_share_is_cut_where_less_is_free():
    """Job a takes 3 of 4 GPUs in slot 0; b gets level 1 there and what it needs later."""
    a = job("a", 10, 10, ("c", 3, 1.0))
    b = job("b", 40, 60, *CURVE)
    assert planned(problem([b, a], c=4), **BARE) == {
        "b": ["c1", "c2", "c2", "c2"],
        "a": ["c3", "-", "-", "-"],
    }


def test_late_job_first_last_or_nothing():
    """A hopeless job takes the most it can before, after, or not at all."""
    hopeless = job("h", 10, 100, *CURVE)
    good = job("g", 40, 40, *CURVE)
    instance = problem([hopeless, good], c=4)
    assert planned(instance, late="first", **BARE) == {"h": ["c4"] * 4, "g": ["-"] * 4}
    assert planned(instance, late="last", **BARE) == {"h": ["c2"] * 4, "g": ["c1"] * 4}
    assert planned(instance, late="nothing", **BARE) == {"h": ["-"] * 4, "g": ["c1"] * 4}


def test_knee_cap_leaves_out_levels_that_do_not_raise_the_rate():
    """With rates falling at 4 GPUs a late job takes 2 with the cap and 4 without."""
    fallen = job("a", 10, 100, ("c", 1, 1.0), ("c", 2, 1.8), ("c", 4, 1.5))
    instance = problem([fallen], c=4)
    assert planned(instance, **BARE)["a"] == ["c2"] * 4
    # The option changes levels only; without the cap the largest is taken.
    assert planned(instance, knee_cap=False, **BARE)["a"] == ["c4"] * 4


def test_rule_1_keeps_a_job_on_the_edge_even_when_it_will_be_late():
    """The job could be met in the cloud, but it stays; without the rule it moves."""
    from edgeflow_opt.problem import Running

    stays = job("a", 20, 20, ("c", 1, 1.0), ("e", 1, 0.5), running=Running(site="e", gpus=1))
    instance = problem([stays], c=1, e=1)
    assert planned(instance)["a"] == ["e1"] * 4
    assert planned(instance, rule_1=False, rule_2=False, rule_3=False)["a"] == [
        "c1", "c1", "-", "-",
    ]  # fmt: skip


def test_rule_1_keeps_the_first_jobs_when_servers_go():
    """With one server left for two edge jobs the first stays, the other returns to the cloud."""
    from edgeflow_opt.problem import Running

    both = [
        job(name, 40, 20, ("c", 1, 1.0), ("e", 1, 1.0), running=Running(site="e", gpus=1))
        for name in "ab"
    ]
    assert planned(problem(both, c=1, e=1), elastic=False, share="constant") == {
        "a": ["e1", "e1", "-", "-"],
        "b": ["c1", "c1", "-", "-"],
    }


def test_rule_2_moves_the_first_job_that_the_edge_finishes_if_gpus_are_free():
    """Job a cannot finish on the edge, b can; with the cloud full nobody moves."""
    a = job("a", 40, 40, ("c", 1, 1.0), ("e", 1, 0.5))
    b = job("b", 40, 20, ("c", 1, 1.0), ("e", 1, 0.5))
    assert planned(problem([a, b], c=3, e=1), elastic=False, share="constant") == {
        "a": ["c1"] * 4,
        "b": ["e1"] * 4,
    }
    assert planned(problem([a, b], c=2, e=1), elastic=False, share="constant") == {
        "a": ["c1"] * 4,
        "b": ["c1", "c1", "-", "-"],
    }


def test_rule_3_moves_the_most_hopeless_job_first():
    """Both end late; b would still need longer beyond its deadline, so it goes to the edge."""
    a = job("a", 10, 30, ("c", 1, 1.0), ("e", 1, 0.5))
    b = job("b", 10, 60, ("c", 1, 1.0), ("e", 1, 0.5))
    instance = problem([a, b], c=1, e=1)
    assert planned(instance)["b"] == ["e1"] * 4
    assert planned(instance)["a"] == ["c1", "c1", "c1", "-"]
    assert planned(instance, rule_3=False, fill=False, share="constant")["b"] == [
        "-",
        "-",
        "-",
        "c1",
    ]


def test_elastic_scaling_prefers_the_job_that_saves_most_gpu_time_per_gpu():
    """One GPU is left; the job of linear speedup saves more with it than the one of poor speedup."""
    poor = job("p", 40, 40, ("c", 1, 1.0), ("c", 2, 1.1))
    good = job("g", 40, 40, ("c", 1, 1.0), ("c", 2, 2.0))
    plan = planned(problem([poor, good], c=3), fill=False, share="constant")
    assert plan["g"][0] == "c2"
    assert plan["p"][0] == "c1"


def test_elastic_scaling_serves_jobs_that_hold_nothing_first():
    """The job whose late-heavy plan idles now gets the GPU, though the other one scales well."""
    idle = job("i", 40, 10, ("c", 1, 1.0))
    busy = job("b", 40, 40, ("c", 1, 1.0), ("c", 2, 2.0))
    plan = planned(problem([idle, busy], c=2), share="two_level", fill=False)
    assert plan["i"][0] == "c1"
    assert plan["b"][0] == "c1"


def test_losses_are_planned_for():
    """A restart of 10 s makes one GPU too slow for work 30 in 40 s after 15 s of idling before."""
    fresh = job("a", 40, 35, *CURVE)
    resumed = dataclasses.replace(fresh, last_site="c", restart_s=10.0)
    assert planned(problem([fresh], c=4), **BARE)["a"] == ["c1"] * 4
    assert planned(problem([resumed], c=4), **BARE)["a"] == ["c2", "c2", "c2", "-"]
    assert planned(problem([resumed], c=4), charge_losses=False, **BARE)["a"] == ["c1"] * 4


def test_slack_moves_the_aim_before_the_deadline():
    """With 10 s of slack the same job needs two GPUs."""
    instance = problem([job("a", 40, 40, *CURVE)], c=4)
    assert planned(instance, **BARE)["a"] == ["c1"] * 4
    assert planned(instance, slack_s=10.0, **BARE)["a"] == ["c2", "c2", "c2", "-"]


def test_admission_refuses_the_batch_or_the_culprit():
    """One infeasible job of two new ones: ElasticFlow's code refuses both, per job only it."""
    instance = problem([job("a", 40, 40, *CURVE), job("b", 10, 500, *CURVE)], c=4)
    idle = ["-"] * 4
    assert planned(instance, admission="elasticflow") == {"a": idle, "b": idle}
    one = planned(instance, admission="per_job")
    assert one["b"] == idle
    assert one["a"][0] != "-"


def test_moldable_job_keeps_one_mode_in_one_run():
    """The earliest unbroken stretch is behind the slots in which the cloud has no GPU."""
    rigid = job("a", 40, 20, ("c", 1, 1.0), malleable=False)
    instance = problem([rigid], c=[(0.0, 1), (10.0, 0), (20.0, 1)])
    assert planned(instance)["a"] == ["-", "-", "c1", "c1"]


def test_moldable_left_over_is_where_it_can_be_done():
    """A site that is tried after the best one and cannot do the job does not take it away."""
    for rates in ([("c", 1, 1.0)], [("c", 1, 1.0), ("e", 1, 0.4)]):
        rigid = job("a", None, 20, *rates, malleable=False)
        assert planned(problem([rigid], c=1, e=1))["a"] == ["c1", "c1", "-", "-"]


def test_first_cloud_that_fits_and_first_edge_that_finishes():
    """The second job finds the first cloud full; a slow edge site is passed over."""
    rates = (("c", 1, 1.0), ("d", 1, 1.0))
    jobs = [job(name, 40, 40, *rates) for name in "ab"]
    assert planned(problem(jobs, c=1, d=1), elastic=False, share="constant") == {
        "a": ["c1"] * 4,
        "b": ["d1"] * 4,
    }
    slow_and_fast = (("c", 1, 1.0), ("e1", 1, 0.1), ("e2", 1, 1.0))
    moved = problem([job("a", 40, 40, *slow_and_fast)], c=2, e1=1, e2=1)
    assert planned(moved)["a"] == ["e21"] * 4
