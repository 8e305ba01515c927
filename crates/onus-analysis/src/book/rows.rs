//! What is remembered of an edge, a procedure and a process, in memory and on disk.

use std::time::Duration;

use onus_api::{EdgeCounts, EdgePolicyFacts, ProcedureCounts, ServiceFacts};
use onus_core::EdgeClass;
use onus_learn::{
    ClassFinding, CleanCounts, Declared, ESTIMATOR_BYTES, Estimator, MeasuredClass, frozen,
};

use crate::clock::Millis;
use crate::codec::{Reader, Writer};
use crate::names::{Name, Names};

/// Which edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EdgeKey {
    pub(crate) caller: Name,
    pub(crate) caller_procedure: Name,
    pub(crate) callee: Name,
    pub(crate) procedure: Name,
}

/// Which procedure of which service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcedureKey {
    pub(crate) service: Name,
    pub(crate) procedure: Name,
}

/// An edge, over all processes of its caller.
#[derive(Clone, Debug)]
pub(crate) struct EdgeRow {
    pub(crate) key: EdgeKey,
    pub(crate) counts: EdgeCounts,
    /// The counts that have become evidence.
    pub(crate) at_tick: EdgeCounts,
    /// What was counted in the last whole minute.
    last: [u32; EdgeCounts::LEN],
    pub(crate) policy: EdgePolicyFacts,
    pub(crate) estimator: Estimator,
    /// The class as agents were told, and when and from what it was made.
    pub(crate) told: Told,
    /// When it was last reported.
    pub(crate) seen: Millis,
    /// Since when calls fail; `None` while none does.
    pub(crate) failing: Option<Millis>,
    pub(crate) dirty: bool,
}

/// What agents were told of an edge's class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) class: MeasuredClass,
    pub(crate) since: Millis,
    pub(crate) k: f64,
    pub(crate) n: f64,
}

/// A procedure, over all processes of its service.
#[derive(Clone, Debug)]
pub(crate) struct ProcedureRow {
    pub(crate) key: ProcedureKey,
    pub(crate) counts: ProcedureCounts,
    pub(crate) at_tick: ProcedureCounts,
    pub(crate) last: ProcedureCounts,
    /// Since when it claims errors as its own; `None` while it claims none.
    pub(crate) failing: Option<Millis>,
    pub(crate) dirty: bool,
}

/// A process that reports.
#[derive(Clone, Debug)]
pub(crate) struct InstanceRow {
    pub(crate) service: Name,
    /// The number of its last report.
    pub(crate) sequence: u64,
    /// Reports of it that never came.
    pub(crate) lost: u64,
    pub(crate) seen: Millis,
    pub(crate) facts: ServiceFacts,
    pub(crate) dirty: bool,
}

impl EdgeRow {
    pub(crate) fn new(key: EdgeKey, now: Millis) -> Self {
        Self {
            key,
            counts: EdgeCounts::default(),
            at_tick: EdgeCounts::default(),
            last: [0; EdgeCounts::LEN],
            policy: EdgePolicyFacts::default(),
            estimator: Estimator::new(now.timestamp()),
            told: Told { class: MeasuredClass::NoData, since: now, k: 0.0, n: 0.0 },
            seen: now,
            failing: None,
            dirty: true,
        }
    }

    /// Ends a minute: what was counted in it.
    pub(crate) fn end_minute(&mut self) -> EdgeCounts {
        let minute = self.counts.since(self.at_tick);
        self.dirty |= !minute.is_zero();
        self.last = minute.to_array().map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        self.at_tick = self.counts;
        if minute.calls_failed == 0 {
            self.dirty |= self.failing.take().is_some();
        }
        minute
    }

    pub(crate) fn last_minute(&self) -> EdgeCounts {
        EdgeCounts::from_array(self.last.map(u64::from))
    }

    /// Learns from a minute and its caller's clean requests, where an operator may have `said` the
    /// class; whether agents have to be told of another one.
    pub(crate) fn learn(
        &mut self,
        minute: &EdgeCounts,
        caller: CleanCounts,
        said: Option<EdgeClass>,
        now: Millis,
    ) -> bool {
        let at = now.timestamp();
        let counts = onus_learn::EdgeCounts {
            calls: minute
                .ok_caller_ok
                .saturating_add(minute.ok_caller_failed)
                .saturating_add(minute.failures()),
            failures: minute.failures(),
            isolated: minute.isolated(),
            isolated_both: minute.alone_caller_failed,
            joint: minute.jointly_caller_ok.saturating_add(minute.jointly_caller_failed),
            joint_both: minute.jointly_caller_failed,
        };
        if counts.failures > 0 {
            let class = said.unwrap_or_else(|| self.told.class.edge_class());
            let frozen = frozen(caller.apart_from(&counts, class));
            self.estimator.minute(counts, frozen, at);
        }
        let measured = self.estimator.measure(at);
        if measured.class == self.told.class {
            return false;
        }
        self.told = Told { class: measured.class, since: now, k: measured.k, n: measured.n };
        self.dirty = true;
        true
    }

    /// The class with all that explains it.
    pub(crate) fn finding(&self, declared: Declared, now: Millis) -> ClassFinding {
        declared.resolve(self.estimator.measure(now.timestamp()))
    }

    pub(crate) fn encode(&self, names: &Names, now: Millis) -> Vec<u8> {
        let EdgeKey { caller, caller_procedure, callee, procedure } = self.key;
        let mut writer = Writer::default();
        for name in [caller, caller_procedure, callee, procedure] {
            writer.text(names.name(name));
        }
        writer.counts(&self.counts.to_array()).counts(&self.at_tick.to_array());
        let policy = &self.policy;
        writer
            .number(policy.attempts.into())
            .number(policy.budget_percent.map_or(0, |percent| u64::from(percent) + 1))
            .number(policy.budget_min_per_second.into())
            .number(policy.declared_attempts.into())
            .number(
                u64::from(policy.foreign_retries)
                    | u64::from(policy.unsafe_methods) << 1
                    | u64::from(policy.unknown) << 2,
            );
        writer
            .number(now.0)
            .bytes(&self.estimator.to_bytes(now.timestamp()))
            .number(self.told.since.0)
            .number(self.told.k.to_bits())
            .number(self.told.n.to_bits())
            .number(self.seen.0)
            .number(self.failing.map_or(0, |since| since.0));
        writer.finish()
    }

    pub(crate) fn decode(row: &[u8], names: &mut Names, now: Millis) -> Option<Self> {
        let mut reader = Reader::new(row);
        let mut name = || Some(names.intern(reader.text()?));
        let key = EdgeKey {
            caller: name()?,
            caller_procedure: name()?,
            callee: name()?,
            procedure: name()?,
        };
        let mut edge = Self::new(key, now);
        edge.counts = EdgeCounts::from_array(reader.counts()?);
        edge.at_tick = EdgeCounts::from_array(reader.counts()?);
        let mut small = || u32::try_from(reader.number()?).ok();
        edge.policy = EdgePolicyFacts {
            attempts: small()?,
            budget_percent: small()?.checked_sub(1),
            budget_min_per_second: small()?,
            declared_attempts: small()?,
            ..EdgePolicyFacts::default()
        };
        let flags = reader.number()?;
        edge.policy.foreign_retries = flags & 1 != 0;
        edge.policy.unsafe_methods = flags & 2 != 0;
        edge.policy.unknown = flags & 4 != 0;
        let away = Duration::from_millis(now.saturating_sub(Millis(reader.number()?)));
        let bytes: &[u8; ESTIMATOR_BYTES] = reader.bytes()?.try_into().ok()?;
        if let Some(estimator) = Estimator::from_bytes(bytes, now.timestamp(), away) {
            edge.estimator = estimator;
        }
        edge.told.since = Millis(reader.number()?);
        edge.told.k = f64::from_bits(reader.number()?);
        edge.told.n = f64::from_bits(reader.number()?);
        edge.told.class = edge.estimator.measure(now.timestamp()).class;
        edge.seen = Millis(reader.number()?);
        edge.failing = since(reader.number()?);
        edge.dirty = false;
        Some(edge)
    }
}

impl ProcedureRow {
    pub(crate) fn new(key: ProcedureKey) -> Self {
        Self {
            key,
            counts: ProcedureCounts::default(),
            at_tick: ProcedureCounts::default(),
            last: ProcedureCounts::default(),
            failing: None,
            dirty: true,
        }
    }

    pub(crate) fn encode(&self, names: &Names) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.text(names.name(self.key.service)).text(names.name(self.key.procedure));
        writer.counts(&self.counts.to_array()).counts(&self.at_tick.to_array());
        writer.number(self.failing.map_or(0, |since| since.0));
        writer.finish()
    }

    pub(crate) fn decode(row: &[u8], names: &mut Names) -> Option<Self> {
        let mut reader = Reader::new(row);
        let key = ProcedureKey {
            service: names.intern(reader.text()?),
            procedure: names.intern(reader.text()?),
        };
        Some(Self {
            counts: ProcedureCounts::from_array(reader.counts()?),
            at_tick: ProcedureCounts::from_array(reader.counts()?),
            failing: since(reader.number()?),
            dirty: false,
            ..Self::new(key)
        })
    }
}

/// Zero stands for never.
fn since(millis: u64) -> Option<Millis> {
    (millis > 0).then_some(Millis(millis))
}

impl InstanceRow {
    pub(crate) fn new(service: Name) -> Self {
        Self {
            service,
            sequence: 0,
            lost: 0,
            seen: Millis::default(),
            facts: ServiceFacts::default(),
            dirty: true,
        }
    }

    pub(crate) fn encode(&self, names: &Names) -> Vec<u8> {
        let facts = &self.facts;
        let mut writer = Writer::default();
        writer
            .text(names.name(self.service))
            .number(self.sequence)
            .number(self.lost)
            .number(self.seen.0)
            .text(&facts.mode)
            .number(facts.enforce_percent.into())
            .text(&facts.version);
        writer.finish()
    }

    pub(crate) fn decode(row: &[u8], names: &mut Names) -> Option<Self> {
        let mut reader = Reader::new(row);
        let mut instance = Self::new(names.intern(reader.text()?));
        instance.sequence = reader.number()?;
        instance.lost = reader.number()?;
        instance.seen = Millis(reader.number()?);
        instance.facts.mode = reader.text()?.to_owned();
        instance.facts.enforce_percent = u8::try_from(reader.number()?).ok()?;
        instance.facts.version = reader.text()?.to_owned();
        instance.dirty = false;
        Some(instance)
    }
}
