//! Decimal arithmetic for `addf`, `subf`, `mulf` and `divf`, with which sprig uses
//! [shopspring/decimal](https://github.com/shopspring/decimal): 0.1 and 0.2 are 0.3, and not 0.30000000000000004.

/// Digits of a quotient after the point: `DivisionPrecision` of shopspring/decimal.
const QUOTIENT_DIGITS: i32 = 16;

/// A decimal number: the digits, times 10 to the power of the exponent. Results whose digits don't fit are `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal {
    digits: i128,
    exponent: i32,
}

impl Decimal {
    /// The decimal number with the fewest digits that is read as `number`; `None` if that is not finite.
    pub(super) fn of(number: f64) -> Option<Self> {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let exponent: i32 = exponent.parse().ok()?;
        Some(Self { digits, exponent: exponent - i32::try_from(fraction.len()).ok()? })
    }

    /// The float that is nearest to it.
    pub(super) fn to_float(self) -> Option<f64> {
        format!("{}e{}", self.digits, self.exponent).parse().ok()
    }

    pub(super) fn sum(self, other: Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let digits = self.digits_at(exponent)?.checked_add(other.digits_at(exponent)?)?;
        Some(Self { digits, exponent })
    }

    pub(super) fn difference(self, other: Self) -> Option<Self> {
        self.sum(Self { digits: other.digits.checked_neg()?, ..other })
    }

    pub(super) fn product(self, other: Self) -> Option<Self> {
        let digits = self.digits.checked_mul(other.digits)?;
        Some(Self { digits, exponent: self.exponent.checked_add(other.exponent)? })
    }

    /// The quotient with [`QUOTIENT_DIGITS`]; a half is rounded away from zero.
    pub(super) fn quotient(self, other: Self) -> Option<Self> {
        let exponent = other.exponent.checked_sub(QUOTIENT_DIGITS)?;
        let (left, right) = if self.exponent < exponent {
            (self.digits, Self { digits: other.digits, exponent }.digits_at(self.exponent)?)
        } else {
            (self.digits_at(exponent)?, other.digits)
        };
        let (digits, rest) = (left.checked_div(right)?, left.checked_rem(right)?);
        let is_up = rest.unsigned_abs() >= right.unsigned_abs() - rest.unsigned_abs();
        let step = if is_up { left.signum() * right.signum() } else { 0 };
        Some(Self { digits: digits.checked_add(step)?, exponent: -QUOTIENT_DIGITS })
    }

    /// Its digits for a lower exponent.
    fn digits_at(self, exponent: i32) -> Option<i128> {
        let zeros = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        self.digits.checked_mul(10_i128.checked_pow(zeros)?)
    }
}
