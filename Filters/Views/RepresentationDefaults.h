#pragma once

#include "AttentionAtlasViewsModule.h"

/// Called when the plugin is loaded. In a client it sees to it that our data look right at first
/// sight, in the GUI and in scripts alike, where ParaView's own defaults would map class numbers
/// through a rainbow:
///
/// - A representation coloured by one of our colour arrays (unsigned char, 3 components, a name
///   that ends in "Color") shows the colours themselves; by another of our arrays, it maps.
/// - Class numbers (Class, Target, Predicted, First, Second) get a lookup table with the colours of
///   Core's ClassPalette and a legend of all classes of the model; ClassColor and TargetColor get
///   the same table, for the legend.
/// - Attention and probability get a grey scale from 0 to 1, so that the pictures of all heads
///   compare, and scores one from blue to red that is white at 0; accuracy one from white to orange
///   from 0 to 1.
/// - A chart of AttentionHarmonics starts with the coefficients, without amplitudes and phases.
/// - A representation starts with the values that the hint AtlasRepresentation of its source gives.
///
/// A lookup table or property that exists already is the user's and stays as it is, except that
/// classes which it lacks are added. States that are loaded, undo and redo decide by themselves.
ATTENTIONATLASVIEWS_EXPORT void InstallRepresentationDefaults();
