//! All tests over sessions that survive the loss of power.

/// What is so where appenders write themselves: a limit on the size of files stops redo files, too.
macro_rules! without_power {
    ($($item:item)*) => {};
}

tests_with!(Power);
