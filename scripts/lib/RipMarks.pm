# Reads the per-thread output of `read-rip -t`, and tells a lock's two marks from all others.
#
# A mark is {sequence}FILE:LINE or {sequence}FILE:LINE<0xADDRESS>; where the linker has made several marks one, it is
# {sequence}FILE:LINE|FILE:LINE, and none of a lock, but perhaps of an unlocking in any of these files. Marks of wrapped locks say what they mean, in a word
# behind that: FILE:LINE(takes). All others are read by their pattern: a place where a lock is taken has two marks
# on one source line, which therefore have addresses: the first says "waits", the second "has it". That is
# learned from the whole input: wherever two marks follow one another on one line with two addresses, the first
# address is one of waiting and the second one of having. Afterwards a single mark can be told as well, whose
# partner has been overwritten or has not come yet. A line whose marks mostly stand alone is none of these: an
# unlocking function that is inlined in several places has several addresses too, and when two locks are
# released one after the other its marks look like a pair.
#
# It does not know: anything older than the history, which of several locks a place takes, and that a line is no
# lock's if two unlockings always follow one another there. Uses nothing beyond Debian's perl-base.
package RipMarks;

use strict;
use warnings;

# Reads threads from a file handle: a list of { line, name, tid, exited, marks }, a mark being
# { sequence, file, files (all that it may be in), at (FILE:LINE), address (or undef), word (or undef) }. Lines that begin with a blank continue the one before.
sub threads {
    my ($input) = @_;
    my @lines;
    while (my $line = <$input>) {
        $line =~ s/[\r\n]+\z//;
        if (@lines && $line =~ /\A[ \t]+\{\d+\}/) {
            $lines[-1] .= "\n$line";
        } else {
            push @lines, $line;
        }
    }
    return map { thread($_) } @lines;
}

# One thread's line; nothing for any other line. A name may contain anything, also what looks like a line's
# beginning: the last thing that does is the thread's id.
sub thread {
    my ($line) = @_;
    (my $joined = $line) =~ s/,?[ \t]*\n[ \t]+/, /g;
    $joined =~ s/[ \t,]+\z//;
    my $exited = $joined =~ s/,[ \t]+EXIT\z// ? 1 : 0;
    return unless $joined =~ /\A(.*)\[(\d+)\]([^\[\]{}]*):[ \t]+(\{\d+\}.*)\z/;
    my ($name, $tid, $marks) = ($1, $2, $4);
    my @marks = grep { defined } map { mark($_) } split /,[ \t]+(?=\{\d+\})/, $marks;
    return { line => $line, name => $name, tid => $tid, exited => $exited, marks => \@marks };
}

# One mark. What has no file and line (an address without symbols) is a place of its own, and never a lock's.
sub mark {
    my ($text) = @_;
    return unless $text =~ /\A\{(\d+)\}(.*)\z/;
    my ($sequence, $place) = ($1, $2);
    my $line = qr/[^|<]+?:\d+/;
    if ($place =~ /\A((?:$line\|)+(?:$line|\.\.\.))/) {
        my $at = $1;
        my @files = map { /\A(.+):\d+\z/ ? $1 : () } split /\|/, $at;
        return { sequence => $sequence, file => '', files => \@files, at => $at, address => undef, word => undef };
    }
    if ($place =~ /\A(.+?):(\d+)(?:<0x([0-9a-fA-F]+)>)?(?:\(([a-z]+)\))?(?![\d:])/) {
        return { sequence => $sequence, file => $1, files => [$1], at => "$1:$2", address => $3, word => $4 };
    }
    return { sequence => $sequence, file => '', files => [''], at => $place, address => undef, word => undef };
}

# Learns from all threads which addresses of a line wait and which have: $roles->{at}{address} is the number of
# times it was seen first in a pair, minus the number of times it was seen second.
sub learn {
    my @threads = @_;
    my (%roles, %pairs, %alone);
    for my $thread (@threads) {
        my $marks = [ grep { !defined $_->{word} } @{ $thread->{marks} } ];
        my $from = 0;
        while ($from < @$marks) {
            my $to = $from;
            $to++ while $to + 1 < @$marks && $marks->[ $to + 1 ]{at} eq $marks->[$from]{at};
            my $length = $to - $from + 1;
            my $at = $marks->[$from]{at};
            # At its beginning a history may have lost the first mark of a pair, and at its end lack the second.
            my $lost = $length % 2 && $from == 0 && $to < $#$marks ? 1 : 0;
            for (my $i = $from + $lost ; $i + 1 <= $to ; $i += 2) {
                my ($first, $second) = map { $_->{address} } @$marks[ $i, $i + 1 ];
                next unless defined $first && defined $second && $first ne $second;
                $pairs{$at}++;
                $roles{$at}{$first}++;
                $roles{$at}{$second}--;
            }
            # In the midst of a history a lock's mark has its partner beside it.
            $alone{$at}++ if $length % 2 && $from > 0 && $to < $#$marks;
            $from = $to + 1;
        }
    }
    delete @roles{ grep { ($alone{$_} // 0) > $pairs{$_} } keys %roles };
    return \%roles;
}

# What a thread's marks say, one word each: 'waits', 'has', 'unknown' (one of the two), 'released' (a wrapped lock),
# 'nothing' or 'other'.
sub meanings {
    my ($roles, $marks) = @_;
    my (@meanings, $before);
    for my $i (0 .. $#$marks) {
        my $mark = $marks->[$i];
        if (defined $mark->{word}) {
            push @meanings, wrapped($marks, $i);
            $before = undef;
            next;
        }
        my $line = defined $mark->{address} ? $roles->{ $mark->{at} } : undef;
        my $balance = $line ? $line->{ $mark->{address} } // 0 : 0;
        my $meaning = !$line ? 'other' : $balance > 0 ? 'waits' : $balance < 0 ? 'has' : undef;
        # Another inlined copy of the line, which nobody was seen to pass. It waits, unless the mark before it
        # is its first one; a thread's very first mark, number 0, has none before it.
        $meaning //=
              !$before                     ? $mark->{sequence} == 0 ? 'waits' : 'unknown'
            : $before->{at} ne $mark->{at} ? 'waits'
            : $meanings[-1] eq 'waits'     ? 'has'
            : $meanings[-1] eq 'has'       ? 'waits'
            :                                'unknown';
        push @meanings, $meaning;
        $before = $mark;
    }
    return @meanings;
}

# What a wrapper's mark says. It takes a lock, and has it unless it waits or fails next; when it has waited, it goes on
# with the lock.
sub wrapped {
    my ($marks, $i) = @_;
    my $word = $marks->[$i]{word};
    my $next = (grep { defined } map { $_->{word} } @$marks[ $i + 1 .. $#$marks ])[0] // '';
    return 'released' if $word eq 'released';
    return $next eq 'waits' || $next eq 'failed' ? 'nothing' : 'has' if $word eq 'takes';
    return $i == $#$marks ? 'waits' : $next eq 'failed' ? 'nothing' : 'has' if $word eq 'waits';
    return 'nothing';
}

# Whether a file as shown is the one asked for: its whole name, or the last parts of its path.
sub is_file {
    my ($shown, $wanted) = @_;
    return 1 if $shown eq $wanted;
    my $tail = "/$wanted";
    return length $shown > length $tail && substr($shown, -length $tail) eq $tail;
}

1;
