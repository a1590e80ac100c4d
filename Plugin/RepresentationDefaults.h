#pragma once

/// Called when the plugin is loaded. In a client it sees to it that our data look right at first
/// sight, in the GUI and in scripts alike, where ParaView's own defaults would map class numbers
/// through a rainbow:
///
/// - A representation coloured by one of our colour arrays (unsigned char, 3 components, a name
/// that
///   ends in "Color") shows the colours themselves. Coloured by another array, it maps again.
/// - Class numbers (Class, Target, Predicted, First, Second) get a lookup table with the colours of
///   Core's ClassPalette and a legend of all classes of the model; ClassColor and TargetColor get
///   the same table, for the legend.
/// - Attention gets one grey scale from 0 to 1, probability one from 0 to 1, so that the pictures
/// of
///   all heads compare.
/// - A representation starts with the values that the hint AtlasRepresentation of its source gives.
///
/// A lookup table or property that exists already is the user's and stays as it is.
void InstallRepresentationDefaults();
