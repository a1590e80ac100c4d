#pragma once

#include "AttentionAtlasViewsModule.h"

/// Called when the plugin is loaded. In a client it sets defaults under which our data look right
/// at first, in the GUI and in scripts. ParaView's own defaults would map class numbers to a
/// continuous color scale.
///
/// - A representation colored by one of our color arrays (unsigned char, 3 components or 4 with
///   opacity, a name that ends in "Color") shows the colors themselves; our other arrays are mapped
///   to colors.
/// - Class numbers (Class, Target, Predicted, First, Second) get a lookup table with the colors of
///   Core's ClassPalette and a legend of all classes of the model; ClassColor and TargetColor get
///   the same table, for the legend.
/// - Attention and probability get a gray scale from 0 to 1, so that the images of all heads are
///   comparable. Scores get a scale from blue to red that is white at 0. Accuracy gets a scale from
///   white at 0 to orange at 1. Heat gets one from 0 to its largest value. Other arrays start with
///   ParaView's old default, Cool to Warm, which 6.0 has changed.
/// - A render view shows the color bar or the legend of what it shows first, and flat surfaces have
///   labeled axes; its camera leaves room for them when it is reset. Colors that nothing explains,
///   such as those of a picture, have no legend.
/// - A chart has titles of its axes, and words in place of the numbers of its rows.
/// - An Image Chart View has titled axes, with the tokens of an attention map; it shows classes by
///   number, since it cannot show colors as they are.
/// - A chart starts with the series that the hint AtlasRepresentation of its source names.
/// - A representation starts with the values that the hint AtlasRepresentation of its source gives.
///
/// An existing lookup table or property belongs to the user and is not changed, except that missing
/// classes are added. Loading a state, undo and redo are not affected.
ATTENTIONATLASVIEWS_EXPORT void InstallRepresentationDefaults();
