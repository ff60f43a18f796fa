use strict;
use warnings;
use Test::More tests => 1;
use Words;

is(Words::count('a text  of five words'), 5, 'words are counted');
