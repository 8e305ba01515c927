//! How far ownership reaches: off, observing, or enforcing for a share of the request trees
//! (protocol §10).

/// What an operator sets for a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Configured retries, budgets and deadlines go on; ownership neither sends nor reads.
    Off,
    /// Claims are sent and read, and stop nothing.
    #[default]
    Observe,
    /// Claims decide, for this share of the request trees; the others are observed.
    Enforce(Share),
}

impl Mode {
    /// Claims decide for every request.
    pub const ENFORCE: Self = Self::Enforce(Share::ALL);

    /// The arm of a request tree. `halvings` is how often the brake halved the edge's share.
    #[must_use]
    pub const fn arm(self, lot: Lot, halvings: u8) -> Arm {
        match self {
            Self::Off => Arm::Off,
            Self::Observe => Arm::Observe,
            Self::Enforce(share) => {
                let share = share.0.unbounded_shr(halvings as u32);
                if lot.0 < share { Arm::Enforce } else { Arm::Control }
            }
        }
    }

    /// The spelling in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Observe => "observe",
            Self::Enforce(_) => "enforce",
        }
    }
}

/// A share of request trees in units of 0.01 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share(u16);

impl Share {
    /// Every tree.
    pub const ALL: Self = Self(10_000);

    /// `percent` of all trees; `None` above 100.
    #[must_use]
    pub const fn percent(percent: u8) -> Option<Self> {
        if percent <= 100 { Some(Self(percent as u16 * 100)) } else { None }
    }

    /// The share in units of 0.01 %.
    #[must_use]
    pub const fn basis_points(self) -> u16 {
        self.0
    }
}

/// The lot that a request tree has drawn, 0 to 9,999: the same in every host that sees the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lot(u16);

impl Lot {
    /// The lot of the tree with this trace id: FNV-1a (64 bits) of its 16 bytes, modulo 10,000.
    #[must_use]
    pub const fn of_trace_id(trace_id: [u8; 16]) -> Self {
        const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let mut hash = OFFSET_BASIS;
        let mut i = 0;
        while i < trace_id.len() {
            hash = (hash ^ trace_id[i] as u64).wrapping_mul(PRIME);
            i += 1;
        }
        Self((hash % 10_000) as u16)
    }

    /// A lot from random bits, for a request without a trace id.
    #[must_use]
    pub const fn of_random(bits: u64) -> Self {
        Self((bits % 10_000) as u16)
    }

    /// The lot, 0 to 9,999.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// What the mode means for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arm {
    /// Ownership neither sends nor reads.
    Off,
    /// Claims are sent and read, and stop nothing.
    Observe,
    /// As [`Arm::Observe`], in a service that enforces for other requests.
    Control,
    /// Claims decide.
    Enforce,
}

impl Arm {
    /// Whether claims decide.
    #[must_use]
    pub const fn ownership(self) -> Ownership {
        match self {
            Self::Enforce => Ownership::Enforced,
            Self::Off | Self::Observe | Self::Control => Ownership::Observed,
        }
    }

    /// Whether the time that a request allows is read, handed on and kept to. Where ownership only
    /// observes, nobody may notice; limits that an operator configured hold all the same.
    #[must_use]
    pub const fn hands_on_time(self) -> bool {
        match self {
            Self::Enforce => true,
            Self::Off | Self::Observe | Self::Control => false,
        }
    }

    /// Whether ownership sends and reads anything at all.
    #[must_use]
    pub const fn is_off(self) -> bool {
        matches!(self, Self::Off)
    }

    /// The spelling in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Observe => "observe",
            Self::Control => "control",
            Self::Enforce => "enforce",
        }
    }
}

/// Whether rows 1, 4 and 8 of the decision table stop a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ownership {
    /// They do.
    Enforced,
    /// They do not; only a shield does.
    Observed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_are_those_of_the_protocol() {
        // [mode-7]; computed apart.
        for (trace_id, lot) in [
            (0x23c, 3),
            (0x0af7651916cd43dd8448eb211c80319c, 548),
            (0x4bf92f3577b34da6a3ce929d0e0e4736, 1581),
            (1, 3010),
            (0x80f198ee56343ba864fe8b2a57d3eff7, 5470),
            (u128::MAX, 8133),
            (0, 1221),
            (1 << 120, 3524),
        ] {
            assert_eq!(Lot::of_trace_id(trace_id.to_be_bytes()).number(), lot, "{trace_id:032x}");
        }
        for (bits, lot) in [(0, 0), (9_999, 9_999), (10_000, 0), (u64::MAX, 1_615)] {
            assert_eq!(Lot::of_random(bits).number(), lot, "{bits}");
        }
    }

    #[test]
    fn arm_by_mode_share_and_lot() {
        // [mode-1] [mode-7] [brake-2]
        assert_eq!(Mode::default(), Mode::Observe);
        let percent = |percent| Mode::Enforce(Share::percent(percent).unwrap());
        for (mode, lot, halvings, arm) in [
            (Mode::Off, 0, 0, Arm::Off),
            (Mode::Observe, 0, 0, Arm::Observe),
            (Mode::ENFORCE, 9_999, 0, Arm::Enforce),
            (percent(1), 99, 0, Arm::Enforce),
            (percent(1), 100, 0, Arm::Control),
            (percent(0), 0, 0, Arm::Control),
            (Mode::ENFORCE, 4_999, 1, Arm::Enforce),
            (Mode::ENFORCE, 5_000, 1, Arm::Control),
            (Mode::ENFORCE, 0, 13, Arm::Enforce),
            (Mode::ENFORCE, 0, 14, Arm::Control),
            (Mode::ENFORCE, 0, u8::MAX, Arm::Control),
            (Mode::Off, 0, u8::MAX, Arm::Off),
        ] {
            assert_eq!(mode.arm(Lot(lot), halvings), arm, "{mode:?} {lot} {halvings}");
        }
        assert_eq!(Share::percent(100), Some(Share::ALL));
        assert_eq!(Share::percent(101), None);
        assert_eq!(Share::percent(7).map(Share::basis_points), Some(700));
    }
}
