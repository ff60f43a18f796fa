package Words;
use strict;
use warnings;

sub count { my @words = split ' ', shift; return scalar @words }

1;
