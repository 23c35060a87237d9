//! Sums that are made field by field.

/// `adds_up!(Spent: read, output)`: a type whose fields can be added can be added, and summed.
macro_rules! adds_up {
    ($sum:ty: $($field:ident),+) => {
        impl std::ops::AddAssign<&Self> for $sum {
            fn add_assign(&mut self, other: &Self) {
                $(self.$field += other.$field;)+
            }
        }

        impl std::ops::AddAssign for $sum {
            fn add_assign(&mut self, other: Self) {
                *self += &other;
            }
        }

        impl std::ops::Add for $sum {
            type Output = Self;

            fn add(mut self, other: Self) -> Self {
                self += other;
                self
            }
        }

        impl std::iter::Sum for $sum {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                all.fold(Self::default(), |sum, one| sum + one)
            }
        }
    };
}

/// `grows!(Spent: read, output)`: of such a sum, what it has grown by since.
macro_rules! grows {
    ($sum:ty: $($field:ident),+) => {
        impl std::ops::Sub for $sum {
            type Output = Self;

            /// What came in since: no field of the earlier sum is larger.
            fn sub(self, earlier: Self) -> Self {
                Self { $($field: self.$field - earlier.$field),+ }
            }
        }
    };
}

pub(crate) use adds_up;
pub(crate) use grows;
